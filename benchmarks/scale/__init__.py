"""Measures of large lakes: executors, data files, a backlog, columns, earlier commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.scale.backlog import measure_backlog
from benchmarks.scale.cluster import measure_cluster
from benchmarks.scale.columns import measure_columns
from benchmarks.scale.commits import measure_commits
from benchmarks.scale.files import measure_files
from benchmarks.sizes import Size
from benchmarks.steps import Steps

SCALE_MEASURES: Mapping[str, Callable[[Size, Path, Steps], dict[str, Any]]] = {
    "N8a": measure_cluster,
    "N8b": measure_files,
    "N8c": measure_backlog,
    "N8d": measure_columns,
    "N8e": measure_commits,
}
