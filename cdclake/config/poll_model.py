"""Model of `capture:`: tables that queries read, instead of Debezium from the WAL."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from cdclake.config.poll_sql import relations_of
from cdclake.config.problems import Refused
from cdclake.config.schedule import Schedule
from cdclake.config.section import Section

LOG = "log"  # instead of a mapping: Debezium reads the table's changes


def polls_or_none(value: Any) -> Any:
    """Return the mapping of polls, None for `log`; pydantic would report each of the two forms."""
    if value is None or value == LOG:
        return None
    if not isinstance(value, dict):
        raise Refused(f"invalid capture {value!r}", "write `log`, or `{poll: {by: COLUMN}}`")
    return value


def _check_query(query: str) -> str:
    relations_of(query)
    return query


class PollEntry(Section):
    """Polls: queries that read the rows which have changed since the query before."""

    by: str = Field(
        min_length=1,
        description="Column of type timestamptz or timestamp that every insert and update sets to"
        " now(), as the transaction's start.",
        examples=["last_update"],
    )
    every: Schedule = Field(
        default="rate(5 minutes)",
        description="When to poll, as `rate(...)` or `cron(...)`. In a deployment the default is"
        " `rate(15 minutes)`, and less than ten minutes are refused.",
    )
    deletes: Literal["sweep", "none"] = Field(
        default="sweep",
        description="sweep: read the whole table, and delete the lake's rows that it lacks. none:"
        " rows deleted in the source stay in the lake.",
    )
    sweep_every: Schedule | None = Field(
        default=None,
        description="When to sweep; other polls read only changed rows. Default: each poll sweeps.",
        examples=["rate(1 day)"],
    )
    overlap_minutes: int | None = Field(
        default=None,
        ge=1,
        le=1440,
        description="Minutes to read again at each poll: for a read replica, where the primary's"
        " transactions cannot be seen (default there: 15), and for foreign tables. Default on a"
        " primary: as long as the oldest transaction ran.",
    )
    query: Annotated[str, AfterValidator(_check_query)] | None = Field(
        default=None,
        description="SELECT, such as a join, whose result has the declared columns and types;"
        " instead of a table or view of the entry's name. It names tables with their schema.",
    )


class Capture(Section):
    """Capture of a table's changes by polls."""

    poll: PollEntry = Field(description="Queries that read changed rows on a schedule.")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "const": LOG}, handler(core_schema)]}
