"""Shape of `aws: query:`: what a query in Athena may cost, and how long its result stays."""

from __future__ import annotations

from pydantic import Field

from cdclake.config.table_model import Section


class Query(Section):
    """The workgroup in which people query the lake."""

    scan_gb: int = Field(
        default=100, ge=1, le=1_000_000, description="A query that reads more than that is ended."
    )
    result_days: int = Field(
        default=7, ge=1, le=365, description="Days after which a result is deleted."
    )
