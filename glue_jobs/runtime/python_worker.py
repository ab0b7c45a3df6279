"""Python workers of Spark, which serve many tasks one after the other."""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_importers() -> None:
    """Remove importers of zip files from Python's cache; they are made again when needed.

    PySpark calls `importlib.invalidate_caches` in each task, and the importers then read the
    directories of PySpark's own zip files again, one per package: about 0.08 CPU seconds a task.
    """
    cache = sys.path_importer_cache
    for path in [path for path, found in cache.items() if isinstance(found, zipimporter)]:
        del cache[path]
