"""Configuration of the Debezium connector, from the plan; the same locally and on MSK Connect.

Only endpoints, credentials (always by reference) and the epoch differ between the two. Every
non-obvious setting has its reason here; the source is Debezium's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdclake import naming
from cdclake.debezium.avro_converter import GlueRegistry, avro_settings
from cdclake.debezium.heartbeat import HEARTBEAT_QUERY
from cdclake.debezium.record_limit import MAX_EVENT_BYTES
from cdclake.plan import Plan, Table

HEARTBEAT_SECONDS = 10
# Our converter of masked columns (java/). Debezium logs no value of a name that ends in `secret`.
MASKS = "cdclake.mask"
SALT = f"{MASKS}.salt.secret"
MASK_CONVERTER = "cdclake.connect.MaskConverter"
# Our converter of arrays with values that Debezium cannot convert (java/).
_ARRAYS = "cdclake.arrays"
_OWN_ARRAYS = frozenset({"numeric", "enum"})
# Class of PostgreSQL's driver that trusts the authorities of the operating system, or of Java.
SYSTEM_FACTORY = "org.postgresql.ssl.DefaultJavaSSLFactory"
_QUEUE_HEAP_SHARE = 8
# PostgreSQL writes values as the session's settings say, and Debezium reads `bytea` in hex only, no
# interval of the SQL standard, and money only with a point. Options of the connection override what
# server, database and role set. The driver itself sets DateStyle, TimeZone and extra_float_digits.
# With `row_security=off` a snapshot fails if rows would be hidden from it. Otherwise it would pass
# for the table, and a resync would delete the rows that it lacks.
_SESSION_OPTIONS = (
    "-c bytea_output=hex -c IntervalStyle=postgres -c lc_monetary=C -c row_security=off"
)
# Names of our transforms and of our processor (java/).
_OVERSIZED = "oversized"
_UNCONVERTED = "unconverted"
_NULLABLE = "nullable"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAddress:
    """Address of the source; `user` and `password` may be references that Connect resolves."""

    host: str
    port: int
    database: str
    user: str
    password: str
    sslmode: str
    sslrootcert: str = ""  # file with the trusted authorities
    sslfactory: str = ""  # class of the driver or of cdclake that selects the trusted authorities


def queue_bytes(heap_bytes: int) -> int:
    """Return how many bytes of events the connector may queue in a heap of this size.

    The queue's events are in memory twice at times, before and after their conversion, next to
    what the driver has fetched.
    """
    return heap_bytes // _QUEUE_HEAP_SHARE


def connector_config(
    plan: Plan,
    address: SourceAddress,
    *,
    epoch: int,
    mask_salt: str,
    max_queue_bytes: int,
    registry: GlueRegistry | None = None,
) -> dict[str, str]:
    """Return the connector's whole configuration; equal input gives equal output.

    `epoch` is in every record, so that decoding stays a pure function of the record, and old
    records that are read again after a new epoch keep their old one. `mask_salt` is the reference
    to the salt of `mask: hash` and `token`. `max_queue_bytes` is `queue_bytes` of the worker's
    heap. `registry` is required for Avro with the Glue Schema Registry.
    """
    return {
        **_connection(plan, address),
        **_capture(plan),
        **_forms(plan),
        **_converters(plan, mask_salt),
        **_keys(plan),
        **_delivery(max_queue_bytes),
        **_transforms(plan, epoch),
        **(avro_settings(plan, registry) if plan.format == "avro" else {}),
    }


def _connection(plan: Plan, address: SourceAddress) -> dict[str, str]:
    return {
        # Debezium's connector (java/); with its own offsets a stop can lose rows (decision 75).
        "connector.class": "cdclake.connect.LsnGroupConnector",
        # The password is read when the connector starts; no provider restarts it meanwhile.
        "config.action.reload": "none",
        "tasks.max": "1",
        "database.hostname": address.host,
        "database.port": str(address.port),
        "database.dbname": address.database,
        "database.user": address.user,
        "database.password": address.password,
        "database.sslmode": address.sslmode,
        **({"database.sslrootcert": address.sslrootcert} if address.sslrootcert else {}),
        **({"database.sslfactory": address.sslfactory} if address.sslfactory else {}),
        "topic.prefix": plan.name,
        "plugin.name": "pgoutput",
        "slot.name": plan.source_object,
        # PostgreSQL 17 copies the slot to its standbys; Debezium ignores this on older servers.
        "slot.failover": "true",
        "publication.name": plan.source_object,
        # cdclake creates the publication: the connector's role may read, not publish.
        "publication.autocreate.mode": "disabled",
        # After a restart in an incremental snapshot Debezium binds the stored end of its chunk
        # itself, as a text; untyped it compares with any column (java/, KeyTextChunks).
        "driver.stringtype": "unspecified",
        "driver.options": _SESSION_OPTIONS,
        # The default resumes at the slot's position, however far ahead: a silent gap.
        "offset.mismatch.strategy": "trust_offset",
    }


def _capture(plan: Plan) -> dict[str, str]:
    ours = [
        (naming.SOURCE_SCHEMA, naming.HEARTBEAT_TABLE),
        (naming.SOURCE_SCHEMA, naming.SIGNAL_TABLE),
    ]
    # The heartbeat first: a snapshot follows this order, so a marker arrives immediately.
    tables = [*ours, *((table.schema, table.table) for table in plan.tables)]
    columns = [
        *(f"{exactly(*table)}[.].*" for table in ours),
        # Earlier names too, so that a rename that is declared in advance loses no event. The
        # publication's column list keeps another column of such a name in the database.
        *(
            _columns(t, [name for c in t.columns for name in c.names if name not in t.excluded])
            for t in plan.tables
        ),
    ]
    return {
        **_signals(plan),
        "table.include.list": ",".join(exactly(*table) for table in tables),
        "column.include.list": ",".join(columns),
        # After a bulk load it starts at the load's LSN, without a snapshot (decision 11).
        "snapshot.mode": "initial",
        # Truncates are skipped by default; the lake would then keep rows that the source deleted.
        "skipped.operations": "none",
        # Any login may emit a logical message. Debezium would send it to a topic that does not
        # exist, and block forever. `(?s)`: a prefix may contain a line break.
        "message.prefix.exclude.list": "(?s).*",
    }


def _signals(plan: Plan) -> dict[str, str]:
    return {
        "signal.data.collection": f"{naming.SOURCE_SCHEMA}.{naming.SIGNAL_TABLE}",
        "signal.enabled.channels": "source",
        # The only report of a snapshot's end, and of a table that it did not read.
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": plan.notification_topic,
        "heartbeat.interval.ms": str(HEARTBEAT_SECONDS * 1000),
        "heartbeat.action.query": HEARTBEAT_QUERY,
    }


def _forms(plan: Plan) -> dict[str, str]:
    """Return the settings of the values' forms: exact, or refused."""
    return {
        "decimal.handling.mode": "string",
        "time.precision.mode": "microseconds",
        "interval.handling.mode": "string",
        "hstore.handling.mode": "json",
        "binary.handling.mode": "bytes",
        "unavailable.value.placeholder": plan.placeholder,
        "tombstones.on.delete": "true",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        # The default writes the column's database default instead of NULL (KIP-581).
        "value.converter.replace.null.with.default": "false",
        "key.converter.replace.null.with.default": "false",
    }


def _converters(plan: Plan, salt: str) -> dict[str, str]:
    """Return the settings of our converters."""
    settings = _masks(plan, salt) | _arrays(plan)
    names = [name for name in (MASKS, _ARRAYS) if f"{name}.type" in settings]
    # Not `fail`, which would stop all tables when a table loses its replica identity full: then a
    # value is not sent and cannot be converted, and the decoders refuse the event (UNSENT_VALUE).
    # Of an update that changes the key they see an insert, which does not show that (limits.md).
    settings["event.converting.failure.handling.mode"] = "warn"
    # Without it Debezium fails in this mode, too, if the column is NOT NULL.
    settings["post.processors"] = _NULLABLE
    settings[f"{_NULLABLE}.type"] = "cdclake.connect.NullableColumns"
    return settings | ({"converters": ",".join(names)} if names else {})


def _masks(plan: Plan, salt: str) -> dict[str, str]:
    """Return the settings of our masks; Debezium's masks would mask its placeholder too."""
    masked: dict[str, list[str]] = {}
    for table in plan.tables:
        names: dict[str, list[str]] = {}
        for column in table.columns:
            if column.mask is None:
                continue
            kept = f".{column.truncate_to}" if column.mask == "truncate" else ""
            names.setdefault(f"{MASKS}.{column.mask}{kept}", []).extend(column.names)
        for setting, own in names.items():
            masked.setdefault(setting, []).append(_columns(table, own))
    if not masked:
        return {}
    return {
        f"{MASKS}.type": MASK_CONVERTER,
        f"{MASKS}.placeholder": plan.placeholder,
        **({SALT: salt} if plan.is_salted else {}),
        **{setting: ",".join(columns) for setting, columns in masked.items()},
    }


def _arrays(plan: Plan) -> dict[str, str]:
    columns = []
    for table in plan.tables:
        arrays = (each for each in table.columns if each.column_type.array)
        own = [each for each in arrays if each.column_type.base in _OWN_ARRAYS]
        if own:
            columns.append(_columns(table, [name for each in own for name in each.names]))
    if not columns:
        return {}
    return {
        f"{_ARRAYS}.type": "cdclake.connect.ArrayConverter",
        f"{_ARRAYS}.columns": ",".join(columns),
    }


def _columns(table: Table, names: Sequence[str]) -> str:
    """Return one entry for these columns, so that the table's name is in it once.

    The configuration of many columns would otherwise exceed CloudFormation's template.
    """
    entry, escaped = exactly(table.schema, table.table), "|".join(map(_escape, names))
    return f"{entry}[.](?:{escaped})" if len(names) > 1 else f"{entry}[.]{escaped}"


def _keys(plan: Plan) -> dict[str, str]:
    """Return the declared key of each table whose source has another primary key, or none."""
    declared = [_message_key(table) for table in plan.tables]
    return {"message.key.columns": ";".join(declared)}


def _message_key(table: Table) -> str:
    columns = ",".join(_escape(column.source) for column in table.key_columns)
    return f"{exactly(table.schema, table.table)}:{columns}"


def _delivery(max_queue_bytes: int) -> dict[str, str]:
    return {
        # Measured with the worker's producer settings, a fetch size of 10,240 and no limit in
        # bytes: 1.75x the snapshot rate, 1.35x the streaming rate of the defaults, and a median
        # latency of 8 ms instead of 547. Not measured again with the two that bound memory.
        "max.batch.size": "8192",
        "max.queue.size": "65536",
        # A limit in bytes too: 65,536 rows of 100 kB exceed the memory of any worker.
        "max.queue.size.in.bytes": str(max_queue_bytes),
        # The driver holds this many rows at once, whatever their size.
        "snapshot.fetch.size": "1024",
        "poll.interval.ms": "10",
        "incremental.snapshot.chunk.size": "8192",
        # Debezium itself retries a lost connection; any other error fails the task, loudly.
        "errors.max.retries": "10",
    }


def _transforms(plan: Plan, epoch: int) -> dict[str, str]:
    domains = [stream for stream in plan.deliveries if stream.routed]
    routes = {f"domain{number}": stream for number, stream in enumerate(domains)}
    # The last one sees the record that the producer gets.
    names = ["epoch", *routes, _UNCONVERTED, _OVERSIZED]
    settings = {"transforms": ",".join(names), **_epoch_field(epoch), **_oversized_markers()}
    settings[f"transforms.{_UNCONVERTED}.type"] = "cdclake.connect.UnconvertedValues"
    for name, stream in routes.items():
        own = [plan.table(table) for table in stream.tables]
        topics = [naming.topic_name(plan.name, t.schema, t.table) for t in own]
        settings |= {
            f"transforms.{name}.type": "org.apache.kafka.connect.transforms.RegexRouter",
            f"transforms.{name}.regex": "|".join(_escape(topic) for topic in topics),
            f"transforms.{name}.replacement": stream.topic,
        }
    return settings


def _epoch_field(epoch: int) -> dict[str, str]:
    return {
        "transforms.epoch.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.epoch.static.field": naming.EPOCH,
        "transforms.epoch.static.value": str(epoch),
    }


def _oversized_markers() -> dict[str, str]:
    """Return the transform that keeps a record that Kafka refuses from failing the task."""
    return {
        f"transforms.{_OVERSIZED}.type": "cdclake.connect.OversizedRecords",
        f"transforms.{_OVERSIZED}.max.record.bytes": str(MAX_EVENT_BYTES),
    }


def exactly(*parts: str) -> str:
    r"""Return a regular expression that matches only the dotted name of these parts, with its case.

    Debezium compiles its lists case-insensitively; `(?-i)` reverts that, so that `Orders` does not
    include `orders`.

    >>> exactly("public", "a,b")
    '(?-i)public[.]a\\x2cb'
    """
    return "(?-i)" + "[.]".join(_escape(part) for part in parts)


def _escape(name: str) -> str:
    """Return the name as a regular expression without a comma, semicolon or colon.

    Debezium splits its lists at those before it compiles them, so they are written as code points.
    """
    return re.sub(r"[^A-Za-z0-9_]", lambda found: _code_point(ord(found[0])), name)


def _code_point(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\x{{{code:x}}}"


def snapshot_signal(tables: Iterable[Table], *, kind: str = "incremental") -> tuple[str, str]:
    """Return (type, data) of the signal row that starts a snapshot of these tables.

    The recorder of the tests' events also requests snapshots of the other `kind`, "blocking".
    """
    names = ", ".join(_json_text(_signal_name(table)) for table in tables)
    return "execute-snapshot", f'{{"type": "{kind}", "data-collections": [{names}]}}'


def _signal_name(table: Table) -> str:
    return exactly(table.schema, table.table)


def _json_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
