from __future__ import annotations

import gc
import importlib
import sys
import zipfile
from itertools import count
from pathlib import Path
from zipimport import zipimporter

import pytest

from cdclake.jobs.runtime import python_worker
from cdclake.jobs.runtime.python_worker import reduce_task_overhead


def test_only_importers_of_zip_files_are_forgotten_and_come_back_when_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_worker, "_tasks", count(10))
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("cdclake_packed_one.py", "value = 1")
        packed.writestr("cdclake_packed_two.py", "value = 2")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("cdclake_packed_one").value == 1
    cache = sys.path_importer_cache
    others = {path for path, found in cache.items() if not isinstance(found, zipimporter)}
    assert str(archive) in cache.keys() - others

    reduce_task_overhead()

    assert set(cache) == others
    assert importlib.import_module("cdclake_packed_two").value == 2


def test_the_second_task_leaves_out_of_garbage_collection_what_is_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(python_worker, "_tasks", count(1))
    frozen = []
    try:
        for _ in range(3):
            reduce_task_overhead()
            frozen.append(gc.get_freeze_count())
    finally:
        gc.unfreeze()
    assert frozen[0] == 0 < 10_000 < frozen[1] >= frozen[2]
