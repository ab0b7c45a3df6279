"""Files of the databases that are not in this repository: Pagila, and MoMA's collection."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdclake.local.demo.sample_database import SAMPLES
from tests.source_tree import PROJECT

SHARED = PROJECT.parent / "shared" / "data"


def given_folder(database: str) -> Path:
    """Return the folder that the environment names, else the one next to this clone."""
    return Path(os.environ.get(SAMPLES[database].folder_key) or SHARED / database)


def is_given(database: str) -> bool:
    """Check whether the files are there.

    A folder that the environment names counts in any case: tests fail if its name is wrong.
    """
    return bool(os.environ.get(SAMPLES[database].folder_key)) or given_folder(database).is_dir()


def needs_files(database: str) -> pytest.MarkDecorator:
    """Return the mark of a test that is skipped without the database's files."""
    key = SAMPLES[database].folder_key
    reason = f"{key} names no folder, and ../shared/data/{database} does not exist"
    return pytest.mark.skipif(not is_given(database), reason=reason)
