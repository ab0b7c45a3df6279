"""Model of `aws: query:`: cost limit of an Athena query, and retention of its result."""

from __future__ import annotations

from pydantic import Field

from cdclake.config.section import Section


class Query(Section):
    """Athena workgroup for users of the lake."""

    scan_gb: int = Field(
        default=100, ge=1, le=1_000_000, description="Athena cancels a query that scans more."
    )
    result_days: int = Field(
        default=7, ge=1, le=365, description="Days after which results are deleted."
    )
