"""Descriptions of data files, in the JSON of Iceberg's `ContentFileParser` (release 1.10).

The form is not a promised one: a test compares it with what Iceberg writes for a file of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdclake.jobs.iceberg.file_metrics import FileMetrics


def describe_data_file(
    path: str,
    *,
    size: int,
    rows: int,
    metrics: FileMetrics,
    spec_id: int,
    partition: Mapping[str, Any],
) -> str:
    """Return the description of a Parquet file; `partition` has values by partition field id."""
    return json.dumps(
        {
            "spec-id": spec_id,
            "content": "DATA",
            "file-path": path,
            "file-format": "parquet",
            "partition": partition,
            "file-size-in-bytes": size,
            "record-count": rows,
            "column-sizes": _mapped(metrics.sizes),
            "value-counts": _mapped(metrics.values),
            "null-value-counts": _mapped(metrics.nulls),
            "nan-value-counts": _mapped(metrics.nans),
            "lower-bounds": _mapped({k: v.hex().upper() for k, v in metrics.lower.items()}),
            "upper-bounds": _mapped({k: v.hex().upper() for k, v in metrics.upper.items()}),
        }
    )


@dataclass(frozen=True, slots=True)
class LiveFile:
    """Data file of a table's current snapshot, as far as its rows can be replaced."""

    path: str
    sequence: int  # of the data; newer rows have a greater one
    spec_id: int
    partition: Mapping[str, Any]  # JSON values by partition field id


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Described files of a row delta."""

    data_files: Sequence[str] = ()
    delete_files: Sequence[str] = ()
    replaced_in: Sequence[str] = ()  # data files with a replaced row


def as_deletes(description: str, only_file: str | None) -> str:
    """Describe a file as one of position deletes, of `only_file` or of several data files."""
    described = {**json.loads(description), "content": "POSITION_DELETES"}
    if only_file is not None:
        described["referenced-data-file"] = only_file
    return json.dumps(described)


def path_of(description: str) -> str:
    """Return the path of a described file."""
    return str(json.loads(description)["file-path"])


def rows_of(description: str) -> int:
    """Return the number of rows of a described file."""
    return int(json.loads(description)["record-count"])


def _mapped(values: Mapping[int, Any]) -> dict[str, list[Any]]:
    return {"keys": list(values), "values": list(values.values())}
