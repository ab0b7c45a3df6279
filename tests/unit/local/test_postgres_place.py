"""What lakes have left outside goes when another starts, but only if they were deleted."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdclake.local.components import postgres_place
from cdclake.local.components.postgres_place import OWNER_FILE, PLACES_FILE, remove_orphans
from cdclake.local.process.home import Home


@pytest.fixture
def outside(tmp_path, monkeypatch):
    folder = tmp_path / "outside"
    monkeypatch.setattr(postgres_place, "OUTSIDE", folder)
    return folder


def leave(outside: Path, name: str, owner: Path, folders: int = 1) -> Path:
    for number in range(folders):
        (outside / name / "data" / f"{number}").mkdir(parents=True)
    owner.mkdir(parents=True, exist_ok=True)
    postgres_place.write_owner(outside / name, Home(owner))
    return outside / name


def change_places(base: Path, *, device: int = 0, inode: int = 0, at: int) -> None:
    places = json.loads((base / PLACES_FILE).read_text())
    path, then, number = places[at]
    places[at] = [path, then + device, number + inode]
    (base / PLACES_FILE).write_text(json.dumps(places))


def test_only_what_belongs_to_a_deleted_home_goes(outside, tmp_path):
    kept = leave(outside, "a", tmp_path / "other")
    deleted = leave(outside, "b", tmp_path / "deep" / "removed")
    shutil.rmtree(tmp_path / "deep")
    remove_orphans(Home(tmp_path / "home"), keep=None)
    assert [folder.exists() for folder in (kept, deleted)] == [True, False]


def test_a_home_that_was_created_again_loses_the_old_data(outside, tmp_path):
    home = Home(tmp_path / "home")
    own = leave(outside, "a", home.path)
    change_places(own, inode=1, at=0)
    remove_orphans(home)
    assert not own.exists()


def test_the_data_of_a_home_on_an_unmounted_disk_stays(outside, tmp_path):
    """Its mount point is there, empty; or it is gone with the folder that the disk was in."""
    under_a_mount, was_a_mount = (
        leave(outside, name, tmp_path / name / "home") for name in ("disk", "point")
    )
    shutil.rmtree(tmp_path / "disk" / "home")
    change_places(under_a_mount, device=1, inode=1, at=1)  # of the disk's root, not of the point
    change_places(under_a_mount, device=1, at=0)
    shutil.rmtree(tmp_path / "point" / "home")
    change_places(was_a_mount, device=1, at=0)
    remove_orphans(Home(tmp_path / "home"))
    assert under_a_mount.exists() and was_a_mount.exists()


def test_a_home_that_is_covered_by_a_mount_keeps_its_data(outside, tmp_path):
    home = Home(tmp_path / "home")
    own = leave(outside, "a", home.path)
    change_places(own, device=1, inode=1, at=0)
    remove_orphans(home)
    assert own.exists()


def test_data_without_a_record_of_its_place_stays(outside, tmp_path):
    base = leave(outside, "old", tmp_path / "removed")
    (base / PLACES_FILE).unlink()
    shutil.rmtree(tmp_path / "removed")
    remove_orphans(Home(tmp_path / "home"))
    assert (base / OWNER_FILE).exists()


def test_purge_removes_the_lakes_own_data_alone(outside, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    home = Home(tmp_path / "home")
    home.create()
    own = leave(outside, postgres_place.outside_folder(home).name, home.path)
    other = leave(outside, "b", home.path)
    postgres_place.purge(home)
    assert (own.exists(), other.exists()) == (False, True)


def test_lakes_that_start_at_once_do_not_disturb_each_other(outside, tmp_path):
    for name in ("a", "b", "c"):
        leave(outside, name, tmp_path / "removed", folders=400)
    shutil.rmtree(tmp_path / "removed")
    with ThreadPoolExecutor(4) as threads:
        each = [threads.submit(remove_orphans, Home(tmp_path / f"{n}")) for n in range(4)]
    assert [done.exception() for done in each] == [None] * 4
    assert [*outside.iterdir()] == []
