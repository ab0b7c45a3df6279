"""Delivery by Firehose as a plan has it: its streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

CHANGES_FUNCTION = "firehose_changes"  # in lambda/: decodes change events


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStream:
    """One Firehose stream: what it reads, by what its rows are made, and where they go.

    Of MSK it reads one topic, and appends to the logs of its tables.
    """

    name: str  # the domain's, or the lake's name of its only table
    source: Literal["msk", "direct_put", "kinesis"] = "msk"
    topic: str = ""  # that it reads of MSK; of Kinesis its stream; Direct PUT has none
    tables: tuple[str, ...]  # names in the lake
    routed: bool  # the topic carries a domain's tables, and more may join them
    buffer_seconds: int
    buffer_mib: int
    function_seconds: int
    function_mib: int
    function_retries: int
    retry_seconds: int
    backup: Literal["failed", "all"]
    error_prefix: str  # folder of the bucket, without slashes around it
    mib_per_second: int  # the most that is expected
    route: str | None = None  # jq that tells a row's log, where the function does not
    table: str | None = None  # of the lake: where rows go of which neither of them tells it
    function: str | None = CHANGES_FUNCTION  # in lambda/; None: records are rows as they come

    @staticmethod
    def from_raw(raw: dict[str, Any]) -> DeliveryStream:
        """The stream of which these are the fields, as JSON has them."""
        return DeliveryStream(**{**raw, "tables": tuple(raw["tables"])})
