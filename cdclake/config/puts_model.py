"""Model of `puts:`: tables whose records producers put directly, or into a Kinesis stream."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from cdclake.config import literals
from cdclake.config.firehose_model import (
    MAX_FUNCTION_MIB,
    MIN_FUNCTION_MIB,
    Function,
    StreamSettings,
)
from cdclake.config.problems import Refused, check_distinct
from cdclake.config.section import Section
from cdclake.config.table_model import Transform
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.puts.put_values import SUPPORTED, is_supported

_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
# The role of a stream names each of its tables: with long names even fewer fit (checks.put_roles).
MAX_TABLES = 30
_FOLDER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")


def _check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise Refused(
            f"invalid put table name {name!r}",
            "use 1 to 30 lowercase letters, digits and underscores, starting with a letter",
        )
    return name


def _check_put_type(spelling: str) -> str:
    if not is_supported(literals.parse_column_type(spelling)):
        raise Refused(
            f"put tables have no columns of type {spelling!r}", f"use {', '.join(SUPPORTED)}"
        )
    return spelling


def _check_folder(folder: str) -> str:
    if _FOLDER.fullmatch(folder) is None:
        raise Refused(
            f"invalid folder {folder!r}",
            "write a path relative to the pipeline file, without `..`, such as `transforms/clicks`",
        )
    return folder


PutsName = Annotated[str, AfterValidator(_check_name)]
PutType = Annotated[str, AfterValidator(_check_put_type), Field(description="Type of the field.")]


class PutColumns(Section):
    """Columns of a put table, its key and its partitions."""

    columns: dict[str, PutType] = Field(
        default_factory=dict,
        min_length=1,
        description="The columns: the exact name of a field, and its type. A field that is missing"
        " or null is NULL.",
    )
    key: Annotated[list[str], AfterValidator(check_distinct)] = Field(
        default_factory=list,
        description="Fields that identify a record. A record without one of them fails; a saved"
        " query returns each key once.",
    )
    partition_by: list[Transform] = Field(
        default_factory=lambda: [f"day({ARRIVED_AT})"],
        json_schema_extra={"default": [f"day({ARRIVED_AT})"]},
        description="Columns, or `year`, `month`, `day` or `hour` of one, that the table is"
        f" partitioned by. `{ARRIVED_AT}` is when Firehose, or the Kinesis stream in front of it,"
        " received the record.",
    )


class RoutedTableEntry(PutColumns):
    """One of the tables that a stream's records are routed to."""

    model_config = ConfigDict(json_schema_extra={"required": ["columns"]})

    values: Annotated[list[str], AfterValidator(check_distinct)] | None = Field(
        default=None,
        min_length=1,
        description="Values of the field that `route:` names, whose records go to this table; by"
        " default the table's name.",
    )


class PutFunction(Function):
    """Buffer in front of the function that checks records, and its retries."""

    # Records may be as small as `{"id":0}`, and a call has up to 400 bytes around each.
    mib: float = Field(
        default=MIN_FUNCTION_MIB,
        ge=MIN_FUNCTION_MIB,
        le=MAX_FUNCTION_MIB,
        description=f"MiB of records, at most, in one call; {MIN_FUNCTION_MIB} if `firehose` does"
        " not set it either. A larger value is refused if the smallest record of the columns would"
        " exceed a call's 6 MB.",
    )


class PutsEntry(PutColumns, StreamSettings):
    """Stream that JSON records are put into, and the append-only table or tables that they go to.

    Without `route:` the only table has the stream's name.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["columns"]},
                {"required": ["route", "tables"]},
            ]
        }
    )

    function: PutFunction = Field(default_factory=PutFunction)
    source: Literal["direct_put", "kinesis"] = Field(
        default="direct_put",
        description="direct_put: producers put records into Firehose. kinesis: they put them into a"
        " Kinesis stream, which Firehose and others can read. Must not change once deployed:"
        " declare a second entry instead, move the producers, then remove the first.",
    )
    route: str | None = Field(
        default=None,
        min_length=1,
        description="Field of the records whose value, a text, selects one of `tables:`. A record"
        " whose value selects none fails.",
    )
    tables: dict[PutsName, RoutedTableEntry] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_TABLES,
        description="With `route:`: the tables that the records go to, by name.",
    )
    unknown_fields: Literal["refuse", "ignore"] = Field(
        default="refuse",
        description="A field that is not a column: refuse fails the record, ignore omits the"
        " field.",
    )
    transform: Annotated[str, AfterValidator(_check_folder)] | None = Field(
        default=None,
        description="Folder, relative to the pipeline file, with a `handler.py` whose"
        " `handler(event, context)` Firehose's function calls first.",
    )
