"""Shape of `aws: monitoring:`: who is told that something is wrong, and from where on it is."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from cdclake.config.problems import check_distinct
from cdclake.config.table_model import Section

Email = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+[.][^@\s.]+$")]


class Monitoring(Section):
    """Who gets the alarms, and their thresholds."""

    email: Annotated[list[Email], AfterValidator(check_distinct)] = Field(
        default_factory=list,
        max_length=20,
        examples=["on-call@example.com"],
        description="Who is written to; each must confirm the first mail. Others subscribe to the"
        " topic that the deployment prints.",
    )
    freshness_minutes: int = Field(
        default=15, ge=2, le=1440, description="The lake's newest heartbeat is older than that."
    )
    lag_records: int = Field(
        default=100_000,
        ge=1,
        description="A topic's unread records are more than that, and grow for half an hour.",
    )
    quarantined_per_hour: int = Field(
        default=0, ge=0, description="More events than that are refused within an hour."
    )
    slot_wal_percent: int = Field(
        default=50, ge=1, le=95, description="Of `slot_wal_gb`: the slot keeps more WAL than that."
    )
    free_storage_percent: int = Field(
        default=8,
        ge=1,
        le=50,
        description="Of `storage_gb`: less of the database's disk is free. RDS lets it grow at 10 %"
        " of what there is.",
    )
    kafka_disk_percent: int = Field(
        default=80, ge=10, le=95, description="A broker's disk is fuller than that."
    )
    small_files: int = Field(
        default=10_000,
        ge=100,
        description="After maintenance a table has more files than its bytes need by so many.",
    )
