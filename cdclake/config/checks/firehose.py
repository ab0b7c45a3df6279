"""Whether what Firehose is to deliver goes together, and keeps within the services' quotas.

The quotas are those of AWS's documentation and API model; nothing here has run on AWS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from cdclake.config.document import Document, Location
from cdclake.config.firehose_model import STREAMS_PER_REGION, StreamSettings, settings_of
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, did_you_mean
from cdclake.debezium.topics import PARTITIONS

_SECTION = "firehose"
_MIB = 1 << 20
MAX_FUNCTION_BYTES = 6 * _MIB  # that a function is given, or gives, at most
_MIN_EVENT_BYTES = 450  # bytes of an event beside its row, none of them is smaller
_WRAPPING_BYTES = (
    320  # bytes that wrap a record on its way to the function or from it, beside base64
)
_PARTITION_BYTES_PER_S = 10_000_000  # that a stream reads of a partition of MSK in a second


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream as the file has it; `domain` is None for a table with one of its own."""

    domain: str | None
    tables: Sequence[TableOutline]
    settings: StreamSettings

    @property
    def spelled(self) -> str:
        """For messages."""
        return f"the domain {self.domain!r}" if self.domain else repr(self.tables[0].spelled)


def check_use(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """What speaks of Firehose speaks of something that it delivers."""
    delivered = _delivered(tables)
    if _SECTION in document.values and not delivered and not document.mapping("weblogs"):
        message, remedy = "no table is delivered by Firehose", "write `delivery: firehose` at some"
        yield document.key_problem((_SECTION,), message, f"{remedy}, or remove this")
    for table in tables:
        if "domain" in table.entry and table.entry.get("delivery") != _SECTION:
            message = f"{table.spelled!r} has a domain, and is not delivered by Firehose"
            remedy = "add `delivery: firehose`, or remove this"
            yield document.key_problem((*table.location, "domain"), message, remedy)
    for table in delivered:
        if table.entry.get("apply") == "each_batch":
            yield document.problem(
                (*table.location, "apply"),
                f"the stream, which has batches, does not see {table.spelled!r}",
                "remove this: what Firehose delivers is applied on a schedule",
            )


def check_domains(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Tables name domains that are declared, and each of these has tables."""
    declared = document.mapping(_SECTION, "domains")
    named = set()
    for table in _delivered(tables):
        domain = table.entry.get("domain")
        named.add(domain)
        if isinstance(domain, str) and domain not in declared:
            yield document.problem(
                (*table.location, "domain"),
                f"`firehose: domains:` does not declare {domain!r}",
                did_you_mean(domain, declared) or f"declare `{domain}: {{}}` there",
            )
    alone = {table.name for table in _delivered(tables) if "domain" not in table.entry}
    for domain in declared:
        if domain in alone:
            message = f"the stream of the table {domain!r} has this name already"
            remedy = "call the domain otherwise, or put the table into it"
            yield document.key_problem((_SECTION, "domains", domain), message, remedy)
        if domain not in named:
            yield document.key_problem(
                (_SECTION, "domains", domain),
                f"no table is in the domain {domain!r}",
                f"write `domain: {domain}` at some, or remove this",
            )


def check_quotas(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Streams of the account, bytes a second, bytes of a call, tables of a stream."""
    streams = list(_streams(document, tables))
    redrive = bool(streams)  # which has a stream of its own
    count = len(streams) + redrive + len(document.mapping("weblogs"))
    allowed = document.get(_SECTION, "account_streams")
    allowed = allowed if type(allowed) is int else STREAMS_PER_REGION
    if count > allowed:
        yield document.problem(
            (_SECTION, "account_streams"),
            f"the file asks for {count} streams, and the account may have {allowed} more",
            "let tables share a `domain:`, or ask AWS for more and write what it allows",
        )
    for stream in streams:
        yield from _check_rate(document, stream)
        yield from _check_function(document, stream)
        yield from _check_tables(document, stream)


def _check_rate(document: Document, stream: _Stream) -> Iterator[Problem]:
    rate, most = stream.settings.mib_per_second, PARTITIONS * _PARTITION_BYTES_PER_S
    if rate * _MIB > most:
        yield document.problem(
            _place(document, stream, "mib_per_second"),
            f"{rate} MiB a second for {stream.spelled}, and Firehose reads {most / _MIB:.1f} of a"
            f" topic with {PARTITIONS} partition",
            "write `delivery: stream` at the table with most of it, or part the domain",
        )


def _check_function(document: Document, stream: _Stream) -> Iterator[Problem]:
    mib = stream.settings.function.mib
    least = min(_least_event(table) for table in stream.tables)
    if bytes_of_a_call(mib, least) > MAX_FUNCTION_BYTES:
        smaller = (
            less for less in range(1, mib) if bytes_of_a_call(less, least) <= MAX_FUNCTION_BYTES
        )
        fits = max(smaller, default=0)
        yield document.problem(
            _place(document, stream, "function", "mib"),
            f"{mib} MiB of events of {least} bytes may take"
            f" {bytes_of_a_call(mib, least) / 1e6:.1f} MB a call for"
            f" {stream.spelled}, and a function takes and gives {MAX_FUNCTION_BYTES / 1e6:.1f}",
            f"write `mib: {fits}`",
        )


def bytes_of_a_call(mib: int, least: int) -> int:
    """Bytes of a call with so many MiB of records of `least` bytes, as base64 and wrapped."""
    return mib * _MIB * 4 // 3 + mib * _MIB // least * _WRAPPING_BYTES


def _check_tables(document: Document, stream: _Stream) -> Iterator[Problem]:
    """Firehose says no number; but what it collects is parted into a file for each table."""
    count, mib = len(stream.tables), stream.settings.buffer.mib
    if count > mib:
        yield document.problem(
            _place(document, stream, "buffer", "mib"),
            f"{count} tables share {mib} MiB in {stream.spelled}: files of less than 1 MiB each",
            "part the domain, or collect more: `buffer: {mib: 128}` is the most",
        )


def _least_event(table: TableOutline) -> int:
    """Bytes of an event whose values are all NULL."""
    flowing = (column for column in table.columns if not column.excluded)
    return _MIN_EVENT_BYTES + sum(
        len(column.source.encode()) + len('"":null,') for column in flowing
    )


def _place(document: Document, stream: _Stream, *path: str) -> Location:
    """Where the setting is written, for the domain or for all; else the stream's table."""
    own: Location = (_SECTION, "domains", stream.domain or "", *path)
    for place in (own, (_SECTION, *path)):
        if document.get(*place) is not None:
            return place
    return own[:3] if stream.domain else (*stream.tables[0].location, "delivery")


def _delivered(tables: Sequence[TableOutline]) -> list[TableOutline]:
    return [table for table in tables if table.entry.get("delivery") == _SECTION]


def _streams(document: Document, tables: Sequence[TableOutline]) -> Iterator[_Stream]:
    """Every stream whose settings are understood."""
    section = document.mapping(_SECTION)
    domains: dict[str, list[TableOutline]] = {}
    for table in _delivered(tables):
        domain = table.entry.get("domain")
        if isinstance(domain, str):
            domains.setdefault(domain, []).append(table)
        elif (settings := _understood(section, None)) is not None:
            yield _Stream(None, [table], settings)
    for domain, listed in domains.items():
        settings = _understood(section, domain)
        if settings is not None:
            yield _Stream(domain, listed, settings)


def _understood(section: Mapping[str, Any], domain: str | None) -> StreamSettings | None:
    """None where the model refuses it already."""
    try:
        return settings_of(section, domain)
    except (ValidationError, AttributeError, TypeError):
        return None
