"""The folder of a demo's lake is gone afterwards, with the folder that the demo made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.local.demo.workspace import temporary_home


def test_a_demo_leaves_no_folder(tmp_path: Path) -> None:
    base = tmp_path / ".cdclake"
    with temporary_home(base, keep=False) as home:
        assert home.secrets_file.is_file()
    assert not base.exists()
    with pytest.raises(KeyboardInterrupt), temporary_home(base, keep=False):
        raise KeyboardInterrupt
    assert not base.exists()


def test_a_demo_leaves_what_was_there_before(tmp_path: Path) -> None:
    with temporary_home(tmp_path, keep=False):
        pass
    assert [*tmp_path.iterdir()] == []


def test_a_demo_leaves_the_folder_to_another_one(tmp_path: Path) -> None:
    base = tmp_path / ".cdclake"
    with temporary_home(base, keep=False), temporary_home(base, keep=False) as other:
        pass
    assert not other.path.exists() and not base.exists()
    with temporary_home(base, keep=False), temporary_home(base, keep=True) as kept:
        pass
    assert [*base.iterdir()] == [kept.path]
