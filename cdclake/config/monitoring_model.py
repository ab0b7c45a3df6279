"""Model of `aws: monitoring:`: recipients of the alarms, and their thresholds."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from cdclake.config.problems import check_distinct
from cdclake.config.section import Section

Email = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+[.][^@\s.]+$")]
# SNS takes no address with a password; a query or fragment usually is one.
Webhook = Annotated[
    str, Field(pattern=r"^(https://[^\s@?#{}$]+|\$\{secretsmanager:[^\s:{}]+:[^\s:{}]+\})$")
]


class Monitoring(Section):
    """Recipients of the alarms, and their thresholds."""

    email: Annotated[list[Email], AfterValidator(check_distinct)] = Field(
        default_factory=list,
        max_length=20,
        examples=["on-call@example.com"],
        description="Recipients; each must confirm the first mail. Others can subscribe to the SNS"
        " topic that the deployment prints.",
    )
    webhook: Annotated[list[Webhook], AfterValidator(check_distinct)] = Field(
        default_factory=list,
        max_length=20,
        examples=["https://events.example.com/sns"],
        description="HTTPS endpoints that receive the alarms as SNS messages, and must confirm the"
        " first one. An address that contains a token is a secret: write"
        " `${secretsmanager:NAME:KEY}`.",
    )
    table_metrics: bool = Field(
        default=False,
        description="Also publish metrics of each table: freshness, age of its state, quarantined"
        " events, whether it is stopped, time since it was verified. CloudWatch bills each.",
    )
    freshness_minutes: int = Field(
        default=15, ge=2, le=1440, description="Alarm: the lake's newest heartbeat is older."
    )
    lag_records: int = Field(
        default=100_000,
        ge=1,
        description="Alarm: a topic has more unread records, growing for half an hour.",
    )
    quarantined_per_hour: int = Field(
        default=0, ge=0, description="Alarm: more events are refused within an hour."
    )
    slot_wal_percent: int = Field(
        default=50, ge=1, le=95, description="Alarm: the slot keeps more WAL, of `slot_wal_gb`."
    )
    free_storage_percent: int = Field(
        default=8,
        ge=1,
        le=50,
        description="Alarm: less of the database's disk is free, relative to `storage_gb`. RDS"
        " extends a disk with less than 10 % free.",
    )
    kafka_disk_percent: int = Field(
        default=80, ge=10, le=95, description="Alarm: a broker's disk is fuller."
    )
    small_files: int = Field(
        default=10_000,
        ge=100,
        description="Alarm: after maintenance, a table has so many files more than its bytes need.",
    )
