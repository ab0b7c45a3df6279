"""Target of a table's files, from its properties; properties that it cannot honour are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from cdclake.errors import TableError
from cdclake.jobs.iceberg.file_target import FileTarget, PartitionField
from cdclake.jobs.jvm.java import each

_COLUMN_METRICS = "write.metadata.metrics.column."
_TRANSFORMS = ("day", "identity")
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
_TAGS = "s3.write.tags."
_REFUSED_PREFIX = "write.parquet.bloom-filter-enabled."


def file_target(
    name: str, table: Any, schema_json: str, s3_options: Mapping[str, str]
) -> FileTarget:
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
        s3_options=s3_options,
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
    if transform not in _TRANSFORMS:
        raise TableError(
            name,
            f"its files cannot be written with the partition transform {transform}",
            "restore the partitions that cdclake gave the table",
        )
    source = table.schema().findColumnName(field.sourceId())
    return PartitionField(field.fieldId(), field.name(), source, transform)


def put_options(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of S3's PutObject that S3FileIO would add, from a catalog's settings.

    >>> put_options({"s3.sse.type": "kms", "s3.sse.key": "k", "s3.write.tags.team": "data"})
    {'ServerSideEncryption': 'aws:kms', 'SSEKMSKeyId': 'k', 'Tagging': 'team=data'}
    """
    options = {}
    kinds = {"kms": "aws:kms", "dsse-kms": "aws:kms:dsse", "s3": "AES256"}
    if (kind := conf.get("s3.sse.type", "none")) in kinds:
        options["ServerSideEncryption"] = kinds[kind]
        if "kms" in kind and "s3.sse.key" in conf:
            options["SSEKMSKeyId"] = conf["s3.sse.key"]
    if "s3.acl" in conf:
        options["ACL"] = conf["s3.acl"]
    if "s3.write.storage-class" in conf:
        options["StorageClass"] = conf["s3.write.storage-class"]
    tags = {k.removeprefix(_TAGS): v for k, v in conf.items() if k.startswith(_TAGS)}
    if tags:
        options["Tagging"] = urlencode(tags)
    return options
