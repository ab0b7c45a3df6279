"""Copies of tables in Apache Hudi's format: what the plan holds, and the settings of their job."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

HudiType = Literal["cow", "mor"]

# Settings that Hudi's writer needs from the start of a session. Hudi serializes by Kryo only; dates
# before 1582 are written and compacted as they are.
HUDI_CONF: Mapping[str, str] = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.hive.convertMetastoreParquet": "false",
    **{
        f"spark.sql.{reader}.datetimeRebaseModeIn{way}": "CORRECTED"
        for reader in ("avro", "parquet")
        for way in ("Read", "Write")
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiCopy:
    """Hudi table that `publish_hudi` keeps equal to a state table."""

    name: str
    table: str  # lake name of the table that it copies
    type: HudiType
    partition_by: str | None = None  # lake name of a column
    schedule: str

    @property
    def stored(self) -> tuple[str, ...]:
        """Return the names of its Iceberg tables: none."""
        return ()

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the names of its entries in the catalog."""
        return catalog_entries(self.name, self.type)

    def layout(self, record_key: str) -> str:
        """Return what cannot change once the copy is written, as readable text."""
        by = f", partitioned by {self.partition_by}" if self.partition_by else ""
        return f"{self.type}, keyed by {record_key}{by}"

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> HudiCopy:
        """Parse an entry of the plan's JSON."""
        return HudiCopy(**raw)


def catalog_entries(name: str, table_type: str) -> tuple[str, ...]:
    """Return the catalog's entries of a copy, as Hudi's own tools name them.

    >>> catalog_entries("artists_hudi", "mor")
    ('artists_hudi_ro', 'artists_hudi_rt')
    """
    return (name,) if table_type == "cow" else (f"{name}_ro", f"{name}_rt")


def columns_digest(columns: Mapping[str, str]) -> str:
    """Compute a digest of a copy's columns and their types."""
    return hashlib.sha256(json.dumps(sorted(columns.items())).encode()).hexdigest()[:16]
