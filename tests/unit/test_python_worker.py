from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pytest

from cdclake.jobs.runtime.python_worker import forget_zip_importers


def test_only_importers_of_zip_files_are_forgotten_and_come_back_when_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("cdclake_packed_one.py", "value = 1")
        packed.writestr("cdclake_packed_two.py", "value = 2")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("cdclake_packed_one").value == 1
    cache = sys.path_importer_cache
    others = {path for path, found in cache.items() if not isinstance(found, zipimporter)}
    assert str(archive) in cache.keys() - others

    forget_zip_importers()

    assert set(cache) == others
    assert importlib.import_module("cdclake_packed_two").value == 2
