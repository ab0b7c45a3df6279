"""Jars of one feature, fetched ahead by make: compared with the lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.errors import InputError
from cdclake.jar_lock import parse_jar_lock, render_jar_lock
from cdclake.local.components import installed
from scripts import fetch_jars


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "jars"
    (folder / "hudi").mkdir(parents=True)
    (folder / "hudi" / "a.jar").write_text("a")
    monkeypatch.setattr(fetch_jars, "JARS", folder)
    monkeypatch.setattr(installed, "JARS", folder)
    return folder


def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The profiles that are fetched from now on."""
    found: list[str] = []
    monkeypatch.setattr(fetch_jars, "fetch", lambda profile, lock: found.append(profile))
    return found


def test_locked_jars_are_fetched_once(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, found = (
        parse_jar_lock(render_jar_lock(jars.rglob("*.jar"), {"hudi/a.jar": "https://x"})),
        fetched(monkeypatch),
    )
    fetch_jars.fetch_optional("hudi", lock)
    assert found == []
    (jars / "hudi" / "a.jar").write_text("poisoned")
    fetch_jars.fetch_optional("hudi", lock)
    assert found == ["hudi"]
    (jars / "hudi" / "a.jar").unlink()
    fetch_jars.fetch_optional("hudi", lock)
    assert found == ["hudi", "hudi"]


def test_other_jars_are_not_optional(jars: Path) -> None:
    with pytest.raises(fetch_jars.SetupError, match="no optional jars 'kafka'; choose one of hudi"):
        fetch_jars.fetch_optional("kafka", {})


def test_a_missing_folder_of_setup_names_the_command(jars: Path) -> None:
    assert installed.jar_folder("hudi") == jars / "hudi"
    with pytest.raises(InputError, match="spark is missing; run `make setup`"):
        installed.jar_folder("spark")


def test_the_repository_locks_hudis_jars() -> None:
    names = [name for name in parse_jar_lock(fetch_jars.LOCK.read_text()) if "hudi/" in name]
    assert "hudi/hudi-spark3.5-bundle_2.12-1.0.2.jar" in names
    assert len(names) == 6
