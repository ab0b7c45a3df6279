"""Model of the whole pipeline file; its descriptions become the JSON Schema for editors."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, WithJsonSchema

from cdclake.config.aws_model import Aws
from cdclake.config.connectors_model import ConnectorEntry, ConnectorName
from cdclake.config.derived_model import DerivedEntry
from cdclake.config.firehose_model import Firehose
from cdclake.config.lake_name import DatabaseName, LakeName
from cdclake.config.problems import Refused, check_distinct
from cdclake.config.puts_model import PutsEntry, PutsName
from cdclake.config.schedule import Schedule
from cdclake.config.section import Section
from cdclake.config.source_model import Source
from cdclake.config.table_model import TableEntry
from cdclake.config.weblogs_model import WebLogsEntry, WebLogsName
from cdclake.iceberg.reader_facts import DEFAULT_READERS, ReaderName

ENVIRONMENT_NAME = r"[a-z][a-z0-9]{0,9}"


def _check_whole(value: Any) -> Any:
    """Return `value` unless it only compares equal to an int (`true`, `1.0`)."""
    if type(value) is not int:
        raise Refused(f"{value!r} is not a whole number", "write digits without quotes")
    return value


def _check_null(value: Any) -> Any:
    """Return the word, also where YAML has read `null` as no value."""
    return "null" if value is None else value


def _check_environment_name(name: str) -> str:
    """Return `name` if it fits into the name of every resource."""
    if re.fullmatch(ENVIRONMENT_NAME, name) is None:
        raise Refused(
            f"invalid environment name {name!r}",
            "use 1 to 10 lowercase letters and digits, starting with a letter",
        )
    return name


NO_TABLES = "none"  # of `policies: new_tables`
_PATTERN = {"type": "string"}
_PATTERN_REMEDY = "write schema and table, like `public.*` or `public.order_*`; or `none`"


def _listed_patterns(value: Any) -> Any:
    """Return the patterns as a tuple; YAML reads a missing value as null."""
    if value is None or value == NO_TABLES:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise Refused(f"{value!r} is not a pattern of tables", _PATTERN_REMEDY)
    return tuple(value)


def _check_pattern(pattern: str) -> str:
    """Return `pattern` if it names a schema and a table."""
    if re.fullmatch(r"[^.]+\..+", pattern) is None:
        raise Refused(
            f"{pattern!r} is not a pattern of tables",
            _PATTERN_REMEDY,
        )
    return pattern


TablePattern = Annotated[str, AfterValidator(_check_pattern)]
EnvironmentName = Annotated[str, AfterValidator(_check_environment_name)]


class Lake(Section):
    """Iceberg tables of the pipeline."""

    database: DatabaseName = Field(
        default="cdc_iceberg",
        examples=["cdc_iceberg"],
        description="Glue database of the tables; fixed once the lake exists.",
    )
    readers: Annotated[list[ReaderName], AfterValidator(check_distinct)] = Field(
        default_factory=lambda: list[ReaderName](DEFAULT_READERS),
        min_length=1,
        json_schema_extra={"default": [*DEFAULT_READERS]},
        description="Engines that must be able to read the lake; what one cannot read is refused.",
    )
    format_version: Annotated[Literal[2, 3], BeforeValidator(_check_whole)] = Field(
        default=2,
        description="Iceberg format version; Athena and Firehose do not support 3. Fixed once the"
        " lake exists.",
    )
    history_days: int = Field(
        default=90,
        ge=1,
        le=36500,
        description="Days of full history; older changes are collapsed to the newest of each key,"
        " after 14 days at the earliest.",
    )
    lake_formation: bool = Field(
        default=False,
        description="Grant the deployment's roles their rights on database, tables and data"
        " location in Lake Formation as well: for accounts whose Data Catalog is not IAM only.",
    )
    stream_readers_hours: int = Field(
        default=2,
        ge=2,
        le=168,
        description="Hours that a reader that streams a changelog's snapshots may be behind.",
    )


class Stream(Section):
    """Settings of the streaming job."""

    trigger_seconds: int = Field(
        default=10, ge=1, le=3600, description="Seconds between micro-batches."
    )
    mode: Literal["always_on", "scheduled"] = Field(
        default="always_on",
        description="scheduled: the job reads all available events and stops. In a deployment that"
        " is the default with `aws: size: trial`, and if no table has `delivery: stream`.",
    )


class Schedules(Section):
    """Schedules of the batch jobs in EventBridge's syntax: `rate(...)` or `cron(...)`."""

    apply: Schedule = Field(
        default="rate(15 minutes)",
        description="Applies the changelogs to the state tables. In a deployment with `aws: size:"
        " trial` the default is `rate(1 hour)`.",
    )
    maintain: Schedule = Field(
        default="cron(0 3 * * ? *)", description="Compacts files, expires snapshots, purges."
    )
    verify: Schedule | None = Field(
        default=None,
        examples=["cron(0 5 * * ? *)"],
        description="Compares lake and source, with a metric and an alarm; default: only by hand.",
    )
    checks: Schedule = Field(
        default="rate(1 day)", description="Checks the quality rules of tables with `checks:`."
    )


class Policies(Section):
    """Policies for events that cannot be stored unchanged."""

    not_representable: Annotated[Literal["quarantine", "null"], BeforeValidator(_check_null)] = (
        Field(
            default="quarantine",
            description="Handling of values that their lake type cannot hold, such as NaN in a"
            " decimal: quarantine the event, or store NULL. Key columns are always quarantined.",
            json_schema_extra={"type": ["string", "null"], "enum": ["quarantine", "null", None]},
        )
    )
    stop_table_after: int = Field(
        default=100,
        ge=1,
        description="A table with more refused events than this stops, others continue; a poll with"
        " more rows that cannot be stored fails.",
    )
    oversized_records: Literal["quarantine", "stop"] = Field(
        default="quarantine",
        description="Handling of changes that are too large for Kafka (16 MiB): quarantine a marker"
        " with the key, or also stop the table.",
    )
    new_columns: Literal["ignore", "declare", "stop"] = Field(
        default="ignore",
        description="Handling of source columns that the file neither declares nor excludes."
        " ignore: keep them out of Kafka and report them. declare: also write them into the file"
        " (`up` and `init --update`). stop: stop the table until the file declares or excludes"
        " them.",
    )
    widened_columns: Literal["widen", "stop"] = Field(
        default="widen",
        description="Handling of source types that are widened without loss, such as integer to"
        " bigint. widen: widen the lake's column when the source check sees it. stop: stop the"
        " table at the first values that do not fit.",
    )
    new_tables: Annotated[
        tuple[TablePattern, ...],
        BeforeValidator(_listed_patterns),
        WithJsonSchema({"anyOf": [_PATTERN, {"type": "array", "items": _PATTERN}]}),
    ] = Field(
        default=(),
        examples=["public.*", ["sales.*", "public.order_*"]],
        description="Tables of the source that `init --update` adds to the file and `plan` proposes"
        " when the file does not declare them: `SCHEMA.TABLE` with `*` for any characters and `?`"
        " for one, or a list of such patterns; `none` for no table. `up` and a deployment capture"
        " only tables that the file declares.",
        json_schema_extra={"default": NO_TABLES},
    )


class Environment(Section):
    """Sections that differ in one environment; merged over those of the file, key by key."""

    source: dict[str, JsonValue] = Field(default_factory=dict)
    lake: Lake | None = None
    stream: Stream | None = None
    schedules: Schedules | None = None
    policies: Policies | None = None
    tables: dict[str, JsonValue] = Field(default_factory=dict)
    firehose: dict[str, JsonValue] = Field(default_factory=dict)
    weblogs: dict[str, JsonValue] = Field(default_factory=dict)
    puts: dict[str, JsonValue] = Field(default_factory=dict)
    derived: dict[str, JsonValue] = Field(default_factory=dict)
    connectors: dict[str, JsonValue] = Field(default_factory=dict)
    aws: dict[str, JsonValue] = Field(default_factory=dict)


class PipelineFile(Section):
    """Pipeline: the PostgreSQL tables and web logs that flow into the lake, and how."""

    version: Annotated[Literal[1], BeforeValidator(_check_whole)] = Field(
        description="Version of the file format."
    )
    name: str = Field(
        pattern=r"^[a-z][a-z0-9-]{1,20}$",
        description="Prefix of every resource; must not change once the pipeline runs.",
    )
    source: Source | None = Field(default=None, description="Database of the tables.")
    lake: Lake = Field(default_factory=Lake)
    stream: Stream = Field(default_factory=Stream)
    schedules: Schedules = Field(default_factory=Schedules)
    policies: Policies = Field(default_factory=Policies)
    tables: dict[str, TableEntry] = Field(
        default_factory=dict,
        min_length=1,
        description="The tables, by `schema.table` in the source's exact spelling. The first dot"
        ' separates the two; quote names with dots: `\'"my.schema"."a.b"\'`.',
    )
    firehose: Firehose = Field(default_factory=Firehose)
    weblogs: dict[WebLogsName, WebLogsEntry] = Field(
        default_factory=dict,
        description="Web servers whose requests Firehose writes into tables, by the name or the"
        " name prefix of these tables. With them a file needs no `tables:`.",
    )
    puts: dict[PutsName, PutsEntry] = Field(
        default_factory=dict,
        description="Append-only tables of JSON records that producers put into Firehose or"
        " Kinesis, by name. With them a file needs no `tables:`.",
    )
    derived: dict[LakeName, DerivedEntry] = Field(
        default_factory=dict,
        description="Tables and files that a query computes from the lake's tables, by name.",
    )
    connectors: dict[ConnectorName, ConnectorEntry] = Field(
        default_factory=dict,
        description="Kafka Connect sinks that read the tables' topics next to the stream, by name.",
    )
    aws: Aws = Field(default_factory=Aws)
    environments: dict[EnvironmentName, Environment] = Field(
        default_factory=dict,
        description="Overlays, such as dev and prod, by name; every resource name contains it after"
        " the pipeline's.",
    )
