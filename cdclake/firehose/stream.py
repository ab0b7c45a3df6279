"""Firehose streams in a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

CHANGES_FUNCTION = "firehose_changes"  # in lambda/: decodes change events
CALL_TIMEOUT_S = 300  # of the function: the longest that Firehose waits
# Allowance for clocks, and for appends that take longer than a buffer's time.
_MARGIN_SECONDS = 300
# Column of put records: their arrival at Firehose. A record that is sent again arrives again.
ARRIVED_AT = "arrived_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStream:
    """One Firehose stream: its source, its function and its tables.

    A stream of MSK reads one topic, and appends to the changelogs of its tables.
    """

    name: str  # the domain's, or the name of its only table in the lake
    source: Literal["msk", "direct_put", "kinesis"] = "msk"
    topic: str = ""  # in MSK, or the stream in Kinesis; Direct PUT has none
    tables: tuple[str, ...]  # names in the lake
    routed: bool  # the topic carries the tables of a domain, which may grow
    buffer_seconds: int
    buffer_mib: int
    function_seconds: int
    function_mib: float
    function_retries: int
    retry_seconds: int
    error_prefix: str  # folder in the bucket, without surrounding slashes
    mib_per_second: int  # expected maximum
    route: str | None = None  # jq query for a row's changelog, if the function does not name it
    table: str | None = None  # in the lake, for rows that neither of them routes
    function: str | None = CHANGES_FUNCTION  # in lambda/; None: records are rows already

    @property
    def lateness_seconds(self) -> int:
        """Return the time within which Firehose appends a row that it has read.

        What it gives up by then is written to S3 as failed.
        """
        return longest_delivery_s(
            waiting_s=self.buffer_seconds + self.function_seconds + self.retry_seconds,
            retries=self.function_retries,
        )

    @staticmethod
    def from_raw(raw: dict[str, Any]) -> DeliveryStream:
        """Build a stream from its fields in JSON."""
        known = {name: value for name, value in raw.items() if name != "backup"}  # of older plans
        return DeliveryStream(**{**known, "tables": tuple(raw["tables"])})


def longest_delivery_s(*, waiting_s: int, retries: int) -> int:
    """Return the time of a delivery whose buffers and appends take `waiting_s` seconds.

    A call of the function is repeated `retries` times; the longest one ends by its timeout.
    """
    return waiting_s + CALL_TIMEOUT_S * (1 + retries) + _MARGIN_SECONDS
