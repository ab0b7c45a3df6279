"""Derived tables: the result of a query over the lake's tables, stored and kept up to date."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FileFormat = Literal["iceberg", "parquet", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedTable:
    """Table that `refresh_derived` computes from the relations of the pipeline's tables."""

    name: str
    sql: str  # in Spark's dialect, over `<t>_current`, `<t>_history` and `<t>_changes`
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()  # Spark SQL partition transforms
    format: FileFormat = "iceberg"
    schedule: str
    sources: tuple[str, ...]  # lake names of the pipeline's tables that the query reads
    # By source table: its key columns, and the result's columns that hold them. Empty if the rows
    # that a change concerns cannot be told from these; the table is then rewritten as a whole.
    source_keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def stored(self) -> tuple[str, ...]:
        """Return the names of its Iceberg tables: one, or none if it is stored in plain files."""
        return (self.name,) if self.format == "iceberg" else ()

    def definition(self, columns: Mapping[str, str]) -> str:
        """Compute a digest of the query and of the source columns, by name, that it may read."""
        content = [asdict(self) | {"schedule": ""}, sorted(columns.items())]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> DerivedTable:
        """Parse an entry of the plan's JSON."""
        lists = {name: tuple(raw[name]) for name in ("key", "partition_by", "sources")}
        return DerivedTable(**{**raw, **lists})
