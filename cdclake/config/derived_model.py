"""Model of `derived:`: tables and files that a query computes from the lake's tables."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from cdclake.config.lake_name import LakeName
from cdclake.config.problems import check_distinct
from cdclake.config.schedule import Schedule
from cdclake.config.section import Section
from cdclake.config.table_model import Transform


class DerivedEntry(Section):
    """Derived table: its query, and how the result is stored."""

    sql: str = Field(
        description="One SELECT in Spark's SQL over `<t>_current`, `<t>_history` and `<t>_changes`"
        " of the pipeline's tables.",
    )
    key: Annotated[list[LakeName], AfterValidator(check_distinct)] = Field(
        min_length=1,
        examples=[["order_id"]],
        description="Columns of the result that tell its rows apart.",
    )
    partition_by: list[Transform] = Field(
        default_factory=list,
        description="Iceberg's partition transforms over columns of the result; for files only"
        " columns, which become folders such as `country=Peru`.",
    )
    format: Literal["iceberg", "parquet", "json"] = Field(
        default="iceberg",
        description="iceberg: a table. parquet, json: files compressed by gzip, registered in the"
        " catalog as an external table.",
    )
    schedule: Schedule = Field(
        default="rate(1 hour)",
        description="When the table is refreshed, as `rate(...)` or `cron(...)`.",
    )
