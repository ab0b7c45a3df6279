"""Model of `publish:` of a table: copies of it in another format."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cdclake.config.lake_name import LakeName
from cdclake.config.schedule import Schedule
from cdclake.config.section import Section


class HudiEntry(Section):
    """Copy of the table in Apache Hudi's format."""

    type: Literal["cow", "mor"] = Field(
        default="cow",
        description="Hudi's table type. cow: copy-on-write, one entry in the catalog. mor:"
        " merge-on-read, with the entries `_ro` and `_rt`.",
    )
    name: LakeName | None = Field(
        default=None,
        examples=["orders_hudi"],
        description="Name in the lake; default: the table's with `_hudi`.",
    )
    partition_by: str | None = Field(
        default=None,
        description="Column whose values name the copy's folders, in the source's exact spelling.",
        examples=["nationality"],
    )
    schedule: Schedule = Field(
        default="rate(1 hour)",
        description="When the copy is updated, as `rate(...)` or `cron(...)`.",
    )


class PublishEntry(Section):
    """Copy of the table in another format."""

    hudi: HudiEntry = Field(description="A copy as a Hudi table.")
