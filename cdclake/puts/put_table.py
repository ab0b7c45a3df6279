"""Put tables in a plan: a stream of JSON records, and the columns that they must fit."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cdclake.debezium.types import ColumnType, type_in_plan
from cdclake.firehose.stream import DeliveryStream

FUNCTION = "firehose_puts"  # in lambda/: checks records and converts them into rows
TRANSFORM = "handler.py"  # in the folder that `transform:` names; defines `handler`


@dataclass(frozen=True, slots=True)
class PutColumn:
    """Column of a put table; `source` is the exact name of the field in the records."""

    source: str
    name: str
    type: str

    @property
    def column_type(self) -> ColumnType:
        """Return the parsed type."""
        return type_in_plan(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class PutTable:
    """Append-only table of records that producers put."""

    stream: DeliveryStream
    columns: tuple[PutColumn, ...]
    key: tuple[str, ...] = ()  # lake names of the columns that no record may lack
    partition_by: tuple[str, ...] = ()  # Spark SQL partition transforms over lake names
    unknown_fields: Literal["refuse", "ignore"] = "refuse"
    transform: str | None = None  # the user's folder, relative to the pipeline file

    @property
    def name(self) -> str:
        """Return the name of the table in the lake."""
        return self.stream.name

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names in the lake."""
        return self.stream.tables

    def to_json(self) -> str:
        """Return the table as stable JSON."""
        return json.dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False)

    @staticmethod
    def from_raw(raw: dict[str, Any]) -> PutTable:
        """Build a put table from its fields in JSON."""
        return PutTable(
            stream=DeliveryStream.from_raw(raw["stream"]),
            columns=tuple(PutColumn(**column) for column in raw["columns"]),
            key=tuple(raw["key"]),
            partition_by=tuple(raw["partition_by"]),
            unknown_fields=raw["unknown_fields"],
            transform=raw["transform"],
        )
