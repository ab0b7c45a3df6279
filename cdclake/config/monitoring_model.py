"""Model of `aws: monitoring:`: recipients of the alarms, and their thresholds."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from cdclake.config.problems import Refused, check_distinct
from cdclake.config.section import Section

Email = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+[.][^@\s.]+$")]
# SNS takes no address with a password; a query or fragment usually is one.
_WEBHOOK = r"^(https://[^\s@?#{}$]+|\$\{secretsmanager:[^\s:{}]+:[^\s:{}]+\})$"


def _checked_webhook(address: str) -> str:
    """Return the address; the message about a refused one does not repeat it: it may be secret."""
    if re.fullmatch(_WEBHOOK, address) is None:
        raise Refused(
            "the address of a `webhook` is neither https://HOST/PATH without login, `?` and `#`,"
            " nor a reference to a secret",
            "write it like `https://events.example.com/sns`; if it contains a token, store it in"
            " Secrets Manager and write `${secretsmanager:NAME:KEY}`",
        )
    return address


Webhook = Annotated[
    str, AfterValidator(_checked_webhook), Field(json_schema_extra={"pattern": _WEBHOOK})
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
        default=15,
        ge=2,
        le=1440,
        description="Maximum age of the newest heartbeat in the lake, in minutes (alarm"
        " `freshness`).",
    )
    lag_records: int = Field(
        default=100_000,
        ge=1,
        description="Maximum consumer lag of a topic, in records; the alarm `lag` is on if it is"
        " exceeded and grows for half an hour.",
    )
    quarantined_per_hour: int = Field(
        default=0,
        ge=0,
        description="Maximum number of events refused within an hour (alarm `quarantine`).",
    )
    slot_wal_percent: int = Field(
        default=50,
        ge=1,
        le=95,
        description="Maximum WAL that the slot may retain, in percent of `slot_wal_gb` (alarm"
        " `slot-lag`).",
    )
    free_storage_percent: int = Field(
        default=8,
        ge=1,
        le=50,
        description="Minimum free disk of the database, in percent of `storage_gb` (alarm"
        " `free-storage`). RDS extends a disk with less than 10 % free.",
    )
    kafka_disk_percent: int = Field(
        default=80,
        ge=10,
        le=95,
        description="Maximum disk usage of a broker, in percent (alarm `kafka-disk`).",
    )
    small_files: int = Field(
        default=10_000,
        ge=100,
        description="Maximum number of files, after maintenance, beyond those that a table's bytes"
        " need (alarm `small-files`).",
    )
