"""Put tables in a plan: streams of JSON records, and the columns that these must fit."""

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

    name: str  # in the lake
    columns: tuple[PutColumn, ...]
    key: tuple[str, ...] = ()  # lake names of the columns that no record may lack
    partition_by: tuple[str, ...] = ()  # Spark SQL partition transforms over lake names
    values: tuple[str, ...] = ()  # of the field that routes its stream's records to this table

    @staticmethod
    def from_raw(raw: dict[str, Any]) -> PutTable:
        """Build a put table from its fields in JSON."""
        lists = {name: tuple(raw[name]) for name in ("key", "partition_by", "values")}
        columns = tuple(PutColumn(**column) for column in raw["columns"])
        return PutTable(name=raw["name"], columns=columns, **lists)


@dataclass(frozen=True, slots=True, kw_only=True)
class PutStream:
    """Stream of records that producers put, and the tables that they go to."""

    stream: DeliveryStream
    targets: tuple[PutTable, ...]
    route: str | None = None  # exact name of the field that selects the table; None: only one
    database: str  # of the tables, which the function names if it routes the records
    unknown_fields: Literal["refuse", "ignore"] = "refuse"
    transform: str | None = None  # the user's folder, relative to the pipeline file

    @property
    def name(self) -> str:
        """Return the name of the stream; without a route, its table has the same name."""
        return self.stream.name

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names in the lake."""
        return self.stream.tables

    def to_json(self) -> str:
        """Return the stream with its tables as stable JSON."""
        return json.dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False)

    @staticmethod
    def from_raw(raw: dict[str, Any]) -> PutStream:
        """Build a stream with its tables from its fields in JSON."""
        stream = DeliveryStream.from_raw(raw["stream"])
        targets = tuple(map(PutTable.from_raw, raw["targets"]))
        return PutStream(**{**raw, "stream": stream, "targets": targets})
