"""Checks of the streams that producers put records into: those of web logs and of put tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdclake import naming
from cdclake.config.checks.firehose import MAX_FUNCTION_BYTES, bytes_of_a_call
from cdclake.config.checks.puts import put_entries
from cdclake.config.checks.web_logs import web_log_entries
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.puts_model import PutsEntry
from cdclake.config.weblogs_model import WebLogsEntry
from cdclake.web_logs.model import request_tables

_MIN_REQUEST_BYTES = 190  # an empty request as Fluent Bit sends it
_SMALL_RECORD_BYTES = 100  # of a put table; a call with smaller records may fail
# Default quotas of Direct PUT for Iceberg: in these regions, and elsewhere.
_FAST_REGIONS = ("us-east-1", "us-west-2", "eu-west-1")
_FAST_MIB_PER_S, _DIRECT_PUT_MIB_PER_S = 5, 1


@dataclass(frozen=True, slots=True)
class _PutStream:
    """Declared stream with its tables, and the bytes of a small record."""

    place: Location
    what: str
    tables: Sequence[str]
    record_bytes: int
    entry: WebLogsEntry | PutsEntry


def put_tables(document: Document) -> dict[str, str]:
    """Return the section of each valid table of web logs and of each put table."""
    return {table: str(stream.place[0]) for stream in _streams(document) for table in stream.tables}


def check_names(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the streams and their tables have unique names."""
    taken = {
        name: repr(table.spelled)
        for table in tables
        if table.name
        for name in naming.lake_objects(table.name)
    }
    taken[naming.QUARANTINE] = "cdclake"
    domains = document.mapping("firehose", "domains")
    used = {*domains, *(table.name for table in _delivered(tables))}
    for stream in _streams(document):
        name, remedy = str(stream.place[-1]), f"rename the {stream.what}"
        if name in used:
            message = f"a Firehose stream already has the name {name!r}"
            yield document.key_problem(stream.place, message, remedy)
        used.add(name)
        for table in stream.tables:
            if table in taken:
                message = f"the table {table!r} would also be that of {taken[table]}"
                own = (*stream.place, "tables", table)
                place = own if document.get(*own) is not None else stream.place
                yield document.key_problem(place, message, remedy)
                break
            taken[table] = f"the {stream.what} {name!r}"


def check_sizes(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse settings beyond the quotas of Firehose and Lambda."""
    del tables
    region = document.get("aws", "region")
    is_slow = isinstance(region, str) and region not in _FAST_REGIONS
    quota = _DIRECT_PUT_MIB_PER_S if is_slow else _FAST_MIB_PER_S
    for stream in _streams(document):
        entry = stream.entry
        if entry.source == "direct_put" and entry.mib_per_second > quota:
            yield document.problem(
                (*stream.place, "mib_per_second"),
                f"{entry.mib_per_second} MiB per second exceed the quota of Direct PUT for Iceberg:"
                f" {_FAST_MIB_PER_S} in us-east-1, us-west-2 and eu-west-1, and"
                f" {_DIRECT_PUT_MIB_PER_S} elsewhere",
                "write `source: kinesis`",
            )
        size = bytes_of_a_call(entry.function.mib, stream.record_bytes)
        if size > MAX_FUNCTION_BYTES:
            yield document.problem(
                (*stream.place, "function", "mib"),
                f"{entry.function.mib} MiB of records of {stream.record_bytes} bytes may take"
                f" {size / 1e6:.1f} MB per call, but the limit of a function is"
                f" {MAX_FUNCTION_BYTES / 1e6:.1f}",
                "write `mib: 1`",
            )


def _delivered(tables: Sequence[TableOutline]) -> list[TableOutline]:
    return [t for t in tables if t.entry.get("delivery") == "firehose" and "domain" not in t.entry]


def _streams(document: Document) -> Iterator[_PutStream]:
    for name, logs in web_log_entries(document).items():
        made = request_tables(name, logs.route, tuple(logs.statuses))
        yield _PutStream(("weblogs", name), "web logs", made, _MIN_REQUEST_BYTES, logs)
    for name, entry in put_entries(document).items():
        made = tuple(entry.tables or (name,))
        yield _PutStream(("puts", name), "put table", made, _SMALL_RECORD_BYTES, entry)
