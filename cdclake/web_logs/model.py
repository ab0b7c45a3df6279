"""Web logs in a plan: a web server, the stream of its requests, and their tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cdclake.firehose.stream import DeliveryStream
from cdclake.web_logs.row import STATUS

FUNCTION = "firehose_requests"  # in lambda/: converts parsed requests into rows
BUILD = "build"  # instead of an image: `cdk deploy` builds the one of the folder below
IMAGES = Path(__file__).with_name("images")  # a folder with a Dockerfile for each image
_OTHERS = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLogs:
    """One web server's requests: one table for each listed status, or a single table."""

    stream: DeliveryStream
    by: Literal["status", "day"]
    statuses: tuple[int, ...] = ()
    nginx: str | None = None  # image by digest, or BUILD; needed only by a deployment
    router: str | None = None  # Fluent Bit's image for FireLens, which reads files from S3

    @property
    def name(self) -> str:
        """Return the name of the table, or the prefix of the tables' names."""
        return self.stream.name

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names in the lake; by status, the table of all other statuses is last."""
        return self.stream.tables

    @staticmethod
    def from_raw(raw: dict[str, Any]) -> WebLogs:
        """Build web logs from their fields in JSON."""
        stream = DeliveryStream.from_raw(raw["stream"])
        return WebLogs(**{**raw, "stream": stream, "statuses": tuple(raw["statuses"])})


def request_tables(name: str, by: str, statuses: tuple[int, ...]) -> tuple[str, ...]:
    """Return the tables of requests that are split by status or only partitioned by day.

    >>> request_tables("request", "status", (200, 404))
    ('request_200', 'request_404', 'request_other')
    >>> request_tables("request", "day", ())
    ('request',)
    """
    if by == "day":
        return (name,)
    return (*(f"{name}_{status}" for status in statuses), f"{name}_{_OTHERS}")


def status_query(database: str, name: str, statuses: tuple[int, ...]) -> str:
    """Return the jq 1.6 query that finds a row's table by its status.

    It uses comparisons only: what else Firehose's jq engine supports is not documented.
    """
    listed = " or ".join(f".{STATUS} == {status}" for status in statuses)
    ending = f'(if {listed} then .{STATUS} | tostring else "{_OTHERS}" end)'
    return (
        f'{{destinationDatabaseName: "{database}",'
        f' destinationTableName: ("{name}_" + {ending}), operation: "insert"}}'
    )
