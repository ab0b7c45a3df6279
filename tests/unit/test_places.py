"""The folders of an installation: the cache of the platform, and the user's project."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cdclake import places
from cdclake.local.process.home import Home
from tests.source_tree import PROJECT


def test_a_clone_is_its_own_project() -> None:
    assert (places.IS_INSTALLED, places.user_project(Path("/"))) == (False, PROJECT)
    assert (places.BUILD, places.JARS) == (PROJECT / "build", PROJECT / "jars")


def test_only_a_clone_fetches_by_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = "run `make setup` in the project's folder"
    assert places.fetch_remedy(tmp_path / "spark", "setup") == clone
    monkeypatch.setattr(places, "IS_INSTALLED", True)
    installed = places.fetch_remedy(tmp_path / "spark", "setup")
    assert installed == f"remove {tmp_path}/spark, and run the command again: it fetches the files"


@pytest.mark.parametrize("mark", ["cdk.json", ".cdclake"])
def test_the_nearest_marked_folder_is_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.setattr(places, "IS_INSTALLED", True)
    below = tmp_path / "pipelines" / "more"
    below.mkdir(parents=True)
    assert places.user_project(below) == below
    if mark == "cdk.json":
        (tmp_path / mark).touch()
    else:
        Home(tmp_path / mark).create()
    assert places.user_project(below) == tmp_path
    monkeypatch.chdir(below)
    assert places.user_project() == tmp_path


def test_a_folder_without_a_lake_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "IS_INSTALLED", True)
    below = tmp_path / "shop"
    below.mkdir()
    (tmp_path / ".cdclake" / "logs").mkdir(parents=True)  # of a failed command
    Home(tmp_path / ".cdclake" / "demo-1a2b3c").create()
    assert places.user_project(below) == below


def test_cache_is_the_platforms_unless_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (places.CACHE_KEY, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert places.cache_folder() == tmp_path / ".cache" / "cdclake"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert places.cache_folder() == Path("/x/cdclake")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert places.cache_folder() == tmp_path / "Library" / "Caches" / "cdclake"
    monkeypatch.setenv(places.CACHE_KEY, str(tmp_path / "own"))
    assert places.cache_folder() == tmp_path / "own"
