"""Target of a table's files, from its properties; properties that it cannot honour are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdclake.errors import TableError
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.partition_values import PartitionField, is_supported
from cdclake.jobs.jvm.java import each

_COLUMN_METRICS = "write.metadata.metrics.column."
# Properties of Iceberg's writer with the values that the files have here; None: unset.
_HONOURED: Mapping[str, str | None] = {
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.metrics.default": "truncate(16)",
    "write.object-storage.enabled": "false",
    "write.location-provider.impl": None,
    "write.folder-storage.path": None,
    "encryption.key-id": None,
}
_REFUSED_PREFIX = "write.parquet.bloom-filter-enabled."


def file_target(name: str, table: Any, schema_json: str, storage: ObjectStorage) -> FileTarget:
    """Return the target of files for Iceberg's Table object.

    Raises TableError if the table's properties or partitions want files that the jobs do not write.
    """
    properties: dict[str, str] = dict(table.properties())
    _check(name, properties)
    modes = {
        key.removeprefix(_COLUMN_METRICS): value
        for key, value in properties.items()
        if key.startswith(_COLUMN_METRICS)
    }
    return FileTarget(
        schema=schema_json,
        spec_id=table.spec().specId(),
        partition_by=tuple(_partition_field(name, table, f) for f in each(table.spec().fields())),
        folder=properties.get("write.data.path", f"{table.location()}/data").rstrip("/"),
        full_metrics=frozenset(column for column, mode in modes.items() if mode == "full"),
        storage=storage,
    )


def _check(name: str, properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        is_other = key in _HONOURED and value != _HONOURED[key]
        is_mode = key.startswith(_COLUMN_METRICS) and value != "full"
        if is_other or is_mode or key.startswith(_REFUSED_PREFIX):
            raise TableError(
                name,
                f"its files cannot be written with the table property {key}={value}",
                f"remove it: ALTER TABLE {name} UNSET TBLPROPERTIES ('{key}')",
            )


def _partition_field(name: str, table: Any, field: Any) -> PartitionField:
    transform = field.transform().toString()
    if not is_supported(transform):
        raise TableError(
            name,
            f"its files cannot be written with the partition transform {transform}",
            "restore the partitions that cdclake gave the table",
        )
    source = table.schema().findColumnName(field.sourceId())
    return PartitionField(field.fieldId(), field.name(), source, transform)
