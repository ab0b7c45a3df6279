"""Model of `checks:` of a table: quality rules that a job checks, or the decoders apply."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cdclake.config.problems import Refused
from cdclake.config.section import Section

Value = str | int | float | bool
_ONE_RULE = "write one rule per entry, such as `- not_null: [customer_id]`"


_CANNOT_WITHHOLD = {
    "sql": (
        "`sql` cannot withhold rows: the stream's decoders and Firehose's function evaluate no SQL",
        "write `not_null`, `in` or `range` with `on: quarantine`, or `on: warn`",
    ),
    "references": (
        "`references` cannot withhold rows: an event of the other table may arrive later",
        "write `on: warn`",
    ),
    "freshness": ("`freshness` is a rule of the whole table: it has no row", "write `on: warn`"),
    "row_count": ("`row_count` is a rule of the whole table: it has no row", "write `on: warn`"),
}


class Range(Section):
    """Least and greatest value, both included; at least one of them."""

    min: int | float | str | None = Field(default=None, description="Least value.")
    max: int | float | str | None = Field(default=None, description="Greatest value.")

    @model_validator(mode="after")
    def _check(self) -> Range:
        if self.min is None and self.max is None:
            raise Refused("the range has no limits", "write `min:`, `max:` or both")
        return self


class RowCount(Section):
    """Least and greatest number of live rows; at least one of them."""

    min: int | None = Field(default=None, ge=0, description="Least number of rows.")
    max: int | None = Field(default=None, ge=0, description="Greatest number of rows.")

    @model_validator(mode="after")
    def _check(self) -> RowCount:
        if self.min is None and self.max is None:
            raise Refused("the row count has no limits", "write `min:`, `max:` or both")
        return self


_Values = Annotated[list[Value], Field(description="Allowed values of this column.")]
_Condition = Annotated[str, Field(description="Condition in Spark's SQL.")]
_Referenced = Annotated[str, Field(description="Referenced table, by its lake name.")]


class RuleEntry(Section):
    """One quality rule; what breaks it is reported, or withheld from the lake."""

    not_null: list[str] | None = Field(
        default=None, min_length=1, description="Columns that no row has NULL in."
    )
    one_of: dict[str, _Values] | None = Field(
        default=None,
        alias="in",
        min_length=1,
        description="The values that columns may have; NULL is allowed.",
        examples=[{"status": ["new", "paid", "sent"]}],
    )
    range: dict[str, Range] | None = Field(
        default=None,
        min_length=1,
        description="The least and greatest values of columns; NULL is allowed.",
        examples=[{"total": {"min": 0}}],
    )
    sql: dict[str, _Condition] | None = Field(
        default=None,
        min_length=1,
        description="Conditions in Spark's SQL that each row satisfies, by the rule's name; one"
        " that is NULL counts as satisfied, as in PostgreSQL's CHECK.",
        examples=[{"sent_after_order": "sent_at >= ordered_at"}],
    )
    references: dict[str, _Referenced] | None = Field(
        default=None,
        min_length=1,
        description="By column: the table, by its lake name, whose key has its values. That key"
        " must be one column.",
        examples=[{"customer_id": "customers"}],
    )
    freshness: int | None = Field(
        default=None, ge=60, description="Seconds that the newest change may be old."
    )
    row_count: RowCount | None = Field(default=None, description="Number of live rows.")
    on: Literal["warn", "quarantine"] = Field(
        default="warn",
        description="warn: a failed rule is reported. quarantine: events whose row breaks it are"
        " withheld in the quarantine, too; only for `not_null`, `in` and `range`.",
    )

    @model_validator(mode="after")
    def _check(self) -> RuleEntry:
        if len(self.model_fields_set - {"on"}) != 1:
            raise Refused("an entry of `checks:` is not one rule", _ONE_RULE)
        if self.on == "quarantine":
            for name in self.model_fields_set & _CANNOT_WITHHOLD.keys():
                raise Refused(*_CANNOT_WITHHOLD[name])
        return self
