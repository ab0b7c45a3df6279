"""What lakes of before have left outside goes when another starts, also when two start at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdclake.local.components import postgres_place
from cdclake.local.components.postgres_place import OWNER_FILE, remove_orphans
from cdclake.local.process.home import Home


@pytest.fixture
def outside(tmp_path, monkeypatch):
    folder = tmp_path / "outside"
    monkeypatch.setattr(postgres_place, "OUTSIDE", folder)
    return folder


def leave(outside: Path, name: str, owner: Path, folders: int = 1) -> Path:
    for number in range(folders):
        (outside / name / "data" / f"{number}").mkdir(parents=True)
    (outside / name / OWNER_FILE).write_text(str(owner))
    return outside / name


def test_only_what_has_an_owner_that_is_there_stays(outside, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    kept, own, gone = (
        leave(outside, name, owner)
        for name, owner in (("a", other), ("b", tmp_path / "home"), ("c", tmp_path / "removed"))
    )
    remove_orphans(Home(tmp_path / "home"), keep=None)
    assert [folder.exists() for folder in (kept, own, gone)] == [True, False, False]


def test_lakes_that_start_at_once_do_not_disturb_each_other(outside, tmp_path):
    for name in ("a", "b", "c"):
        leave(outside, name, tmp_path / "removed", folders=400)
    with ThreadPoolExecutor(4) as threads:
        each = [threads.submit(remove_orphans, Home(tmp_path / f"{n}")) for n in range(4)]
    assert [done.exception() for done in each] == [None] * 4
    assert [*outside.iterdir()] == []
