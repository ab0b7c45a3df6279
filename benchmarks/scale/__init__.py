"""Measures of large lakes: executors, data files, a backlog, columns, earlier commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.scale.cluster import measure_cluster
from benchmarks.sizes import Size

SCALE_MEASURES: Mapping[str, Callable[[Size, Path], dict[str, Any]]] = {
    "N8a": measure_cluster,
}
