"""Shape of the whole pipeline file. Descriptions become the JSON Schema that editors show."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from cdclake.config.aws_model import Aws
from cdclake.config.firehose_model import Firehose
from cdclake.config.literals import check_source_name
from cdclake.config.problems import Refused, check_distinct
from cdclake.config.schedule import parse_schedule
from cdclake.config.table_model import LakeName, Section, TableEntry
from cdclake.config.weblogs_model import WebLogsEntry, WebLogsName

ENVIRONMENT_NAME = r"[a-z][a-z0-9]{0,9}"


def _check_whole(value: Any) -> Any:
    """`value`, unless Python takes it for an equal number (`true`, `1.0`)."""
    if type(value) is not int:
        raise Refused(f"{value!r} is not a whole number", "write digits without quotes")
    return value


def _check_null(value: Any) -> Any:
    """The word, also where YAML has taken `null` for no value."""
    return "null" if value is None else value


def _check_environment_name(name: str) -> str:
    """`name`, if every resource's name has room for it."""
    if re.fullmatch(ENVIRONMENT_NAME, name) is None:
        raise Refused(
            f"{name!r} is no name of an environment",
            "write 1 to 10 lower-case letters and digits, a letter first",
        )
    return name


Schedule = Annotated[str, AfterValidator(parse_schedule)]
EnvironmentName = Annotated[str, AfterValidator(_check_environment_name)]
SourceName = Annotated[str, AfterValidator(check_source_name)]
Reader = Literal["athena", "spark", "duckdb"]


class Snapshot(Section):
    """How the rows that exist already come in."""

    mode: Literal["initial", "bulk"] = Field(
        default="initial",
        description="Every row once, then the changes. initial: the rows come through Kafka. bulk:"
        " a Spark job reads them from the database, in parallel.",
    )


class Source(Section):
    """The PostgreSQL database; never a password."""

    database: SourceName = Field(description="Name of the database.")
    snapshot: Snapshot = Field(default_factory=Snapshot)


class Lake(Section):
    """The Iceberg side."""

    database: LakeName = Field(default="cdc_iceberg", description="Glue database of the tables.")
    readers: Annotated[list[Reader], AfterValidator(check_distinct)] = Field(
        default_factory=lambda: list[Reader](("athena", "spark", "duckdb")),
        min_length=1,
        description="Engines that must be able to read the lake; what one cannot read is refused.",
    )
    format_version: Annotated[Literal[2, 3], BeforeValidator(_check_whole)] = Field(
        default=2, description="Iceberg format version; neither Athena nor Firehose takes 3."
    )
    history_days: int = Field(
        default=90,
        ge=1,
        le=36500,
        description="Days of full history; older changes collapse to the newest of each key.",
    )


class Stream(Section):
    """The streaming job."""

    trigger_seconds: int = Field(
        default=10, ge=1, le=3600, description="Seconds between micro-batches."
    )
    mode: Literal["always_on", "scheduled"] = Field(
        default="always_on", description="scheduled: the job reads what is there, then stops."
    )


class Schedules(Section):
    """When the batch jobs run, in EventBridge's words: `rate(...)` or `cron(...)`."""

    apply: Schedule = Field(
        default="rate(15 minutes)", description="Brings state tables up to the log."
    )
    maintain: Schedule = Field(
        default="cron(0 3 * * ? *)", description="Compacts, expires, purges."
    )


class Policies(Section):
    """What happens to an event that cannot be taken as it is."""

    not_representable: Annotated[Literal["quarantine", "null"], BeforeValidator(_check_null)] = (
        Field(
            default="quarantine",
            description="A value its lake type cannot hold, such as NaN in a decimal.",
            json_schema_extra={"type": ["string", "null"], "enum": ["quarantine", "null", None]},
        )
    )
    stop_table_after: int = Field(
        default=100, ge=1, description="Refused events before the table stops; the others go on."
    )


class Environment(Section):
    """Sections that differ in one environment; merged over the file's, mapping by mapping."""

    source: dict[str, JsonValue] = Field(default_factory=dict)
    lake: Lake | None = None
    stream: Stream | None = None
    schedules: Schedules | None = None
    policies: Policies | None = None
    firehose: dict[str, JsonValue] = Field(default_factory=dict)
    weblogs: dict[str, JsonValue] = Field(default_factory=dict)
    aws: dict[str, JsonValue] = Field(default_factory=dict)


class PipelineFile(Section):
    """One pipeline: which PostgreSQL tables and web logs flow into the lake, and how."""

    version: Annotated[Literal[1], BeforeValidator(_check_whole)] = Field(
        description="Version of this file's format."
    )
    name: str = Field(
        pattern=r"^[a-z][a-z0-9-]{1,20}$",
        description="Prefix of every resource; it never changes once the pipeline runs.",
    )
    source: Source | None = Field(default=None, description="Where the tables are.")
    lake: Lake = Field(default_factory=Lake)
    stream: Stream = Field(default_factory=Stream)
    schedules: Schedules = Field(default_factory=Schedules)
    policies: Policies = Field(default_factory=Policies)
    tables: dict[str, TableEntry] = Field(
        default_factory=dict,
        min_length=1,
        description="The tables, under `schema.table` in the source's exact spelling. The first dot"
        ' parts the two; names with dots are quoted: `\'"my.schema"."a.b"\'`.',
    )
    firehose: Firehose = Field(default_factory=Firehose)
    weblogs: dict[WebLogsName, WebLogsEntry] = Field(
        default_factory=dict,
        description="Web servers whose requests Firehose brings into tables, by these tables' name"
        " or its beginning. With them a file needs no `tables:`.",
    )
    aws: Aws = Field(default_factory=Aws)
    environments: dict[EnvironmentName, Environment] = Field(
        default_factory=dict,
        description="Overlays, such as dev and prod, by name; the name follows the pipeline's in"
        " that of every resource.",
    )
