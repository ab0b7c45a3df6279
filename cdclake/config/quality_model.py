"""Model of `checks:` of a table: quality rules that a job checks on a schedule."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from cdclake.config.problems import Refused
from cdclake.config.section import Section

Value = str | int | float | bool
_ONE_RULE = "write one rule per entry, such as `- not_null: [customer_id]`"


def _check_reaction(word: Any) -> Any:
    """Return the word; refuse `quarantine`, which this version does not have."""
    if word == "quarantine":
        raise Refused(
            "a failed rule cannot withhold rows: the lake equals the source",
            "write `on: warn`, or leave such rows out in a derived table",
        )
    return word


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


class RuleEntry(Section):
    """One quality rule; a failed one is reported, and withholds no row."""

    not_null: list[str] | None = Field(
        default=None, min_length=1, description="Columns that no row has NULL in."
    )
    one_of: dict[str, list[Value]] | None = Field(
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
    sql: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="Conditions in Spark's SQL that each row satisfies, by the rule's name; one"
        " that is NULL counts as satisfied, as in PostgreSQL's CHECK.",
        examples=[{"sent_after_order": "sent_at >= ordered_at"}],
    )
    references: dict[str, str] | None = Field(
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
    on: Annotated[Literal["warn"], BeforeValidator(_check_reaction)] = Field(
        default="warn", description="A failed rule is reported; rows cannot be withheld."
    )

    @model_validator(mode="after")
    def _check(self) -> RuleEntry:
        if len(self.model_fields_set - {"on"}) != 1:
            raise Refused("an entry of `checks:` is not one rule", _ONE_RULE)
        return self
