"""Python workers of Spark, which serve many tasks one after the other.

PySpark does work around each task that grows with what a worker has imported, not with the task.
"""

from __future__ import annotations

import gc
import sys
from itertools import count
from zipimport import zipimporter

_tasks = count(1)  # of this worker
_TASK_WITH_ALL_IMPORTS = 2  # the first one also loads the descriptions of AWS's services


def reduce_task_overhead() -> None:
    """Have PySpark's work around a task cost less; call it at the beginning of each task."""
    _forget_zip_importers()
    if next(_tasks) == _TASK_WITH_ALL_IMPORTS:
        _freeze()


def _forget_zip_importers() -> None:
    """Remove importers of zip files from Python's cache; they are made again when needed.

    PySpark calls `importlib.invalidate_caches` in each task, and the importers then read the
    directories of PySpark's own zip files again, one per package: about 0.08 CPU seconds a task.
    """
    cache = sys.path_importer_cache
    for path in [path for path, found in cache.items() if isinstance(found, zipimporter)]:
        del cache[path]


def _freeze() -> None:
    """Leave out what is alive from later garbage collections.

    PySpark collects garbage after each task, and looks at each object of each imported module: a
    quarter of the workers' samples in batches of 10,000 events in twenty tables (by py-spy).
    """
    gc.freeze()
