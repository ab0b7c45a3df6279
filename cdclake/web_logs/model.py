"""Web logs as a plan has them: a web server, the stream its requests go into, and their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cdclake.firehose.stream import DeliveryStream
from cdclake.web_logs.row import STATUS

FUNCTION = "firehose_requests"  # in lambda/: makes rows of what Fluent Bit has parsed
_OTHERS = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLogs:
    """One web server's requests: into a table for each status that is listed, or into one."""

    stream: DeliveryStream
    by: Literal["status", "day"]
    statuses: tuple[int, ...] = ()
    nginx: str | None = None  # images by digest, which a deployment needs and a local lake does not
    router: str | None = None  # Fluent Bit's for FireLens, of the kind that reads files from S3

    @property
    def name(self) -> str:
        """That of the tables, or its beginning."""
        return self.stream.name

    @property
    def tables(self) -> tuple[str, ...]:
        """Names in the lake, that of all other statuses last."""
        return self.stream.tables

    @staticmethod
    def from_raw(raw: dict[str, Any]) -> WebLogs:
        """The web logs of which these are the fields, as JSON has them."""
        stream = DeliveryStream.from_raw(raw["stream"])
        return WebLogs(**{**raw, "stream": stream, "statuses": tuple(raw["statuses"])})


def request_tables(name: str, by: str, statuses: tuple[int, ...]) -> tuple[str, ...]:
    """The tables that requests go to, by what parts them.

    >>> request_tables("request", "status", (200, 404))
    ('request_200', 'request_404', 'request_other')
    >>> request_tables("request", "day", ())
    ('request',)
    """
    if by == "day":
        return (name,)
    return (*(f"{name}_{status}" for status in statuses), f"{name}_{_OTHERS}")


def status_query(database: str, name: str, statuses: tuple[int, ...]) -> str:
    """The query in jq 1.6 that finds a row's table by its status.

    Nothing newer or rarer than a comparison: nobody knows all that Firehose's own engine takes.
    """
    listed = " or ".join(f".{STATUS} == {status}" for status in statuses)
    ending = f'(if {listed} then .{STATUS} | tostring else "{_OTHERS}" end)'
    return (
        f'{{destinationDatabaseName: "{database}",'
        f' destinationTableName: ("{name}_" + {ending}), operation: "insert"}}'
    )
