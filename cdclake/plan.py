"""The plan: the resolved declaration that jobs, Lambdas, connectors and CDK read.

`cdclake.config` resolves it from a pipeline file; all other code gets it as JSON. It is frozen,
contains no endpoints and secrets, and is the same for the local lake and for AWS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from cdclake import naming
from cdclake.connectors.declared import DeclaredConnector
from cdclake.debezium.types import ColumnType, type_in_plan
from cdclake.derived_table import DerivedTable
from cdclake.errors import InputError
from cdclake.firehose.stream import DeliveryStream
from cdclake.hudi_copy import HudiCopy
from cdclake.masks import SALTED, MaskKind
from cdclake.polling import Polling
from cdclake.puts.put_table import PutStream
from cdclake.quality_rule import QualityRule
from cdclake.web_logs.model import WebLogs

PLAN_VERSION = 1
_Named = TypeVar("_Named", DerivedTable, HudiCopy)
Delivery = Literal["stream", "firehose", "poll"]
GLUE_REGISTRY = "glue"  # Plan.registry is this, or the URL of an Apicurio registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Column that flows into the lake; `source` is PostgreSQL's exact spelling."""

    source: str
    name: str
    type: str
    mask: MaskKind | None = None
    truncate_to: int | None = None  # characters kept under mask "truncate"
    renamed_from: tuple[str, ...] = ()  # earlier names in the source; `name` is from the first

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name that the column has or had in the source, the current one first."""
        return (self.source, *reversed(self.renamed_from))

    @property
    def is_nulled(self) -> bool:
        """Check whether NULL replaces every value, also one that was not sent."""
        return self.mask == "null"

    @property
    def column_type(self) -> ColumnType:
        """Return the parsed type."""
        return type_in_plan(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Source table and its tables in the lake."""

    schema: str
    table: str
    name: str
    topic: str
    key: tuple[str, ...]  # lake names, in declared order
    columns: tuple[Column, ...]  # flowing columns in declared order
    excluded: tuple[str, ...] = ()  # source names declared with `exclude`
    delivery: Delivery = "stream"
    polling: Polling | None = None  # with delivery "poll", and only then
    apply: Literal["each_batch", "scheduled"] = "each_batch"
    state_freshness: int = 60  # seconds that the state may lag behind the changelog under load
    replica_identity: Literal["default", "full", "index"] = "default"
    replica_identity_index: str | None = None
    replica_identity_declared: bool = False  # set in the file, so the source may be altered
    partition_by: tuple[str, ...] = ()  # Spark SQL partition transforms over lake names
    maintenance: Literal["own", "glue", "none"] = "own"
    sort_by: tuple[str, ...] = ()  # lake names; compaction sorts the state by them
    deletes: Literal["hard", "soft"] = "hard"
    shard: int = 1  # on AWS: the number of the stack with its topic and tables
    checks: tuple[QualityRule, ...] = ()

    @property
    def source(self) -> str:
        """Return `schema.table`, as PostgreSQL spells it; for messages and keys, not for SQL."""
        return f"{self.schema}.{self.table}"

    @property
    def poll(self) -> Polling:
        """Return the settings of a polled table's polls."""
        if self.polling is None:
            raise ValueError(f"{self.name} is not polled")
        return self.polling

    @property
    def is_query(self) -> bool:
        """Check whether the rows are the result of a query, not those of a table or view."""
        return self.polling is not None and bool(self.polling.query)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """Return the key's columns, in key order."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    @property
    def stored(self) -> tuple[str, ...]:
        """Return the names of its Iceberg tables: the state and the changelog."""
        return self.name, self.changes

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """Return the columns outside the key."""
        return tuple(column for column in self.columns if column.name not in self.key)

    @property
    def changes(self) -> str:
        """Return the lake name of the changelog."""
        return naming.changes_name(self.name)

    @property
    def writer(self) -> str:
        """Return the component that writes the changelog."""
        if self.delivery == "poll":
            return naming.POLL_JOB
        is_streamed = self.delivery == "stream"
        return naming.STREAM_COMPONENT if is_streamed else naming.FIREHOSE_COMPONENT

    @property
    def withholds(self) -> bool:
        """Check whether a rule withholds events (`on: quarantine`)."""
        return any(rule.limit is not None for rule in self.checks)

    @property
    def toastable(self) -> tuple[str, ...]:
        """Return the lake names of the columns whose value may be older than the row's event.

        These are `may_be_unsent`; with `deletes: soft` all columns outside the key, since a delete
        keeps the last values.
        """
        if self.deletes == "soft":
            return tuple(column.name for column in self.value_columns)
        return self.may_be_unsent

    @property
    def may_be_unsent(self) -> tuple[str, ...]:
        """Return the lake names of the columns that an event of the changelog may lack.

        That includes the creation of a changed key. The declared replica identity does not matter:
        the changelog keeps events from before it, and from before a type that is always sent. A
        renamed column is missing in the events between the rename in the source and that in the
        pipeline file.
        """
        return tuple(
            c.name
            for c in self.value_columns
            if c.renamed_from or c.column_type.may_become_toastable
        )

    @property
    def may_stay_unsent(self) -> tuple[str, ...]:
        """Return the lake names of the columns that new events may lack, as declared."""
        whole = self.replica_identity == "full"
        return tuple(
            c.name
            for c in self.value_columns
            if c.renamed_from or (c.column_type.toastable and not whole)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Resolved pipeline."""

    version: int = PLAN_VERSION
    name: str
    source_database: str  # empty: the pipeline has no tables of a database
    snapshot_mode: Literal["initial", "bulk"] = "initial"
    format: Literal["json", "avro"] = "json"  # of the tables' events in Kafka
    registry: str = ""  # with format "avro": GLUE_REGISTRY, or a URL
    compatibility: str = ""  # with the Glue registry: mode of the tables' schemas
    lake_database: str
    readers: tuple[str, ...] = ("athena", "spark", "duckdb")
    format_version: int = 2
    history_days: int = 90
    stream_readers_hours: int = 2
    trigger_seconds: int = 10
    mode: Literal["always_on", "scheduled"] = "always_on"
    schedules: Mapping[str, str] = field(default_factory=dict)
    not_representable: Literal["quarantine", "null"] = "quarantine"
    stop_table_after: int = 100
    oversized_records: Literal["quarantine", "stop"] = "quarantine"
    new_columns: Literal["ignore", "declare", "stop"] = "ignore"
    widened_columns: Literal["widen", "stop"] = "widen"
    tables: tuple[Table, ...]  # whose changes Debezium reads from the WAL
    polled: tuple[Table, ...] = ()  # whose changes queries find
    deliveries: tuple[DeliveryStream, ...] = ()  # of the tables with `delivery: firehose`
    web_logs: tuple[WebLogs, ...] = ()
    puts: tuple[PutStream, ...] = ()
    derived: tuple[DerivedTable, ...] = ()
    copies: tuple[HudiCopy, ...] = ()
    connectors: tuple[DeclaredConnector, ...] = ()

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """Return the tables with a changelog and a state: replicated and polled ones."""
        return (*self.tables, *self.polled)

    @property
    def polls(self) -> Mapping[str, tuple[Table, ...]]:
        """Return the polled tables by their schedule: one run reads all tables of a schedule."""
        found: dict[str, tuple[Table, ...]] = {}
        for table in self.polled:
            found[table.poll.every] = (*found.get(table.poll.every, ()), table)
        return found

    @property
    def streams(self) -> tuple[DeliveryStream, ...]:
        """Return all Firehose streams."""
        return (*self.deliveries, *self.put_streams)

    @property
    def put_streams(self) -> tuple[DeliveryStream, ...]:
        """Return the streams that producers put records into: web logs' and put tables'."""
        requests = (logs.stream for logs in self.web_logs)
        return (*requests, *(put.stream for put in self.puts))

    @property
    def source_object(self) -> str:
        """Return the name of the pipeline's role, publication and slot."""
        return naming.source_object(self.name)

    @property
    def heartbeat_rows_topic(self) -> str:
        """Return the topic of the heartbeat table, whose rows prove that the whole path works."""
        return naming.topic_name(self.name, naming.SOURCE_SCHEMA, naming.HEARTBEAT_TABLE)

    @property
    def signal_topic(self) -> str:
        """Return the topic of the signal table, which Debezium writes, but no component reads."""
        return naming.topic_name(self.name, naming.SOURCE_SCHEMA, naming.SIGNAL_TABLE)

    @property
    def is_salted(self) -> bool:
        """Check whether a column's mask needs the salt."""
        return any(c.mask in SALTED for table in self.all_tables for c in table.columns)

    @property
    def is_checked(self) -> bool:
        """Check whether a table has quality rules."""
        return any(table.checks for table in self.all_tables)

    @property
    def notification_topic(self) -> str:
        """Return the topic of the connector's notifications about finished snapshots."""
        return naming.topic_name(self.name, naming.SOURCE_SCHEMA, naming.NOTIFICATIONS)

    @property
    def own_topics(self) -> Mapping[str, str]:
        """Return the topics without user tables, by their content."""
        return {
            "Heartbeats": naming.heartbeat_topic(self.name),
            "HeartbeatRows": self.heartbeat_rows_topic,
            "Signals": self.signal_topic,
            "Notifications": self.notification_topic,
        }

    @property
    def topics(self) -> tuple[str, ...]:
        """Return all topics to create, since automatic creation is off."""
        of_tables = dict.fromkeys(table.topic for table in self.tables)
        return (*self.own_topics.values(), *of_tables)

    @property
    def control_topics(self) -> Mapping[str, str]:
        """Return the topics through which Iceberg sinks commit, by connector."""
        return {
            connector.name: naming.control_topic(self.name, connector.name)
            for connector in self.connectors
            if connector.is_iceberg_sink
        }

    @property
    def sink_tables(self) -> tuple[str, ...]:
        """Return the tables that Iceberg sinks append to."""
        sinks = (connector for connector in self.connectors if connector.is_iceberg_sink)
        return tuple(naming.sink_name(table) for sink in sinks for table in sink.tables)

    @property
    def placeholder(self) -> str:
        """Return the placeholder in events for a value that Debezium did not receive."""
        return naming.unavailable_placeholder(self.name)

    def table(self, name: str, *, of: str = "lake") -> Table:
        """Return the table with this lake name or this `schema.table`.

        Raises InputError, which mentions `of`, if there is no such table.
        """
        for table in self.all_tables:
            if name in (table.name, table.source):
                return table
        names = ", ".join(table.name for table in self.all_tables)
        raise InputError(f"the {of} has no table {name!r}", f"choose one of {names}")

    def refuses_unheld(self, table: Table, column: Column) -> bool:
        """Check whether the policy refuses values of the column that the state cannot hold.

        Otherwise they become NULL, which a key cannot be: no later event would find the row.
        """
        return self.not_representable == "quarantine" or column.name in table.key

    def definition_of(self, derived: DerivedTable) -> str:
        """Compute a digest of a derived table's query and of the columns that it may read."""
        tables = [table for table in self.all_tables if table.name in derived.sources]
        columns = {f"{t.name}.{c.name}": c.type for t in tables for c in t.columns}
        return derived.definition(columns)

    def derived_table(self, name: str) -> DerivedTable:
        """Return the derived table with this name; raise InputError if there is none."""
        return _named(self.derived, name, "derived table")

    def copy(self, name: str) -> HudiCopy:
        """Return the copy with this name; raise InputError if there is none."""
        return _named(self.copies, name, "copy")

    def polled_table(self, name: str, *, of: str = "lake") -> Table:
        """Return the table like `table`; raise InputError if its changes are not polled."""
        table = self.table(name, of=of)
        if table.polling is None:
            raise InputError(
                f"{table.name} is not polled: its changes come from the WAL",
                "name a table with `capture: {poll: ...}`",
            )
        return table

    def streamed(self, name: str, *, of: str = "lake") -> Table:
        """Return the table like `table`; raise InputError if the stream does not write it."""
        table = self.table(name, of=of)
        if table.delivery != "stream":
            raise InputError(
                f"the stream does not write {table.name}: its delivery is {table.delivery}",
                "name a table with `delivery: stream`",
            )
        return table

    def to_json(self) -> str:
        """Return the plan as stable JSON with sorted keys; equal plans give equal text."""
        return json.dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Plan:
        """Parse a plan from `to_json`; raise ValueError if another version wrote it."""
        raw = json.loads(text)
        if raw.get("version") != PLAN_VERSION:
            raise ValueError(
                f"plan version {raw.get('version')!r} is not {PLAN_VERSION}; deploy again"
            )
        tables = tuple(_table_from(entry) for entry in raw.pop("tables"))
        raw["polled"] = tuple(_table_from(entry) for entry in raw.get("polled", ()))
        raw.pop("aws", None)  # older plans contain the deployment's sizes
        raw["readers"] = tuple(raw["readers"])
        raw["deliveries"] = tuple(map(DeliveryStream.from_raw, raw.get("deliveries", ())))
        raw["web_logs"] = tuple(map(WebLogs.from_raw, raw.get("web_logs", ())))
        raw["copies"] = tuple(map(HudiCopy.from_raw, raw.get("copies", ())))
        raw["puts"] = tuple(map(PutStream.from_raw, raw.get("puts", ())))
        raw["derived"] = tuple(map(DerivedTable.from_raw, raw.get("derived", ())))
        raw["connectors"] = tuple(map(DeclaredConnector.from_raw, raw.get("connectors", ())))
        return Plan(tables=tables, **raw)


def _named(declared: Sequence[_Named], name: str, kind: str) -> _Named:
    for each in declared:
        if name == each.name:
            return each
    names = ", ".join(each.name for each in declared) or "it declares none"
    raise InputError(f"the file has no {kind} {name!r}", f"choose one of: {names}")


def _table_from(raw: dict[str, Any]) -> Table:
    columns = tuple(_column_from(column) for column in raw.pop("columns"))
    lists: dict[str, Any] = {
        name: tuple(raw.pop(name, ())) for name in ("key", "excluded", "partition_by", "sort_by")
    }
    checks = tuple(map(QualityRule.from_raw, raw.pop("checks", ())))
    polling = raw.pop("polling", None)
    return Table(
        columns=columns,
        checks=checks,
        polling=None if polling is None else Polling.from_raw(polling),
        **lists,
        **raw,
    )


def _column_from(raw: dict[str, Any]) -> Column:
    return Column(**{**raw, "renamed_from": tuple(raw.get("renamed_from", ()))})
