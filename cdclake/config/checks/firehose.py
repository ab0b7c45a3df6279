"""Checks of the delivery by Firehose, and of the services' quotas.

The quotas are those of AWS's documentation and API model; nothing here has run on AWS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from cdclake.config.document import Document, Location
from cdclake.config.firehose_model import (
    MAX_FUNCTION_MIB,
    MIN_FUNCTION_MIB,
    STREAMS_PER_REGION,
    StreamSettings,
    settings_of,
)
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, did_you_mean
from cdclake.debezium.topics import PARTITIONS
from cdclake.firehose.arrival import DELIVERY_S
from cdclake.firehose.stream import CALL_TIMEOUT_S, longest_delivery_s

_SECTION = "firehose"
_MIB = 1 << 20
MAX_FUNCTION_BYTES = 6 * _MIB  # maximum request and response of a function
_MIN_EVENT_BYTES = 450  # lower bound of an event's bytes without its row
# Overhead of a record to or from the function, in addition to base64; from Kinesis with a partition
# key of at most 40 characters.
WRAPPING_BYTES = {"msk": 320, "direct_put": 320, "kinesis": 400}
_PARTITION_BYTES_PER_S = 10_000_000  # read rate of a stream from one MSK partition


@dataclass(frozen=True, slots=True)
class _Stream:
    """Declared stream; `domain` is None for a table with its own stream."""

    domain: str | None
    tables: Sequence[TableOutline]
    settings: StreamSettings

    @property
    def spelled(self) -> str:
        """Return the stream's name for messages."""
        return f"the domain {self.domain!r}" if self.domain else repr(self.tables[0].spelled)


def check_use(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse settings of Firehose for tables that it does not deliver."""
    delivered = _delivered(tables)
    if _SECTION in document.values and not delivered and not _count_put(document):
        message, remedy = "no table is delivered by Firehose", "add `delivery: firehose` to one"
        yield document.key_problem((_SECTION,), message, f"{remedy}, or remove this")
    for table in tables:
        if "domain" in table.entry and table.entry.get("delivery") != _SECTION:
            message = f"{table.spelled!r} has a domain, but is not delivered by Firehose"
            remedy = "add `delivery: firehose`, or remove this"
            yield document.key_problem((*table.location, "domain"), message, remedy)
    for table in delivered:
        if table.entry.get("apply") == "each_batch":
            yield document.problem(
                (*table.location, "apply"),
                f"{table.spelled!r} has no batches of the stream, since Firehose delivers it",
                "remove this: changes delivered by Firehose are applied on a schedule",
            )


def check_domains(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that every domain that a table names is declared, and that each has tables."""
    declared = document.mapping(_SECTION, "domains")
    named = set()
    for table in _delivered(tables):
        domain = table.entry.get("domain")
        if not isinstance(domain, str):
            continue
        named.add(domain)
        if domain not in declared:
            yield document.problem(
                (*table.location, "domain"),
                f"`firehose: domains:` does not declare {domain!r}",
                did_you_mean(domain, declared) or f"declare `{domain}: {{}}` there",
            )
    alone = {table.name for table in _delivered(tables) if "domain" not in table.entry}
    for domain in declared:
        if domain in alone:
            message = f"the domain {domain!r} has the name of a table's stream"
            remedy = "rename the domain, or add the table to it"
            yield document.key_problem((_SECTION, "domains", domain), message, remedy)
        if domain not in named:
            yield document.key_problem(
                (_SECTION, "domains", domain),
                f"no table is in the domain {domain!r}",
                f"add `domain: {domain}` to a table, or remove this",
            )


def check_quotas(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check the quotas: streams, bytes per second, bytes per call, tables per stream."""
    streams = list(_streams(document, tables))
    redrive = bool(streams)  # redrive uses one more stream
    count = len(streams) + redrive + _count_put(document)
    allowed = document.get(_SECTION, "account_streams")
    allowed = allowed if type(allowed) is int else STREAMS_PER_REGION
    if count > allowed:
        yield document.problem(
            (_SECTION, "account_streams"),
            f"the file needs {count} streams, but the account may have only {allowed} more",
            "group tables into a shared `domain:`, or raise the quota and write it here",
        )
    for stream in streams:
        yield from _check_rate(document, stream)
        yield from _check_function(document, stream)
        yield from _check_tables(document, stream)
        yield from _check_longest(document, stream)


def _count_put(document: Document) -> int:
    return len(document.mapping("weblogs")) + len(document.mapping("puts"))


def _check_rate(document: Document, stream: _Stream) -> Iterator[Problem]:
    rate, most = stream.settings.mib_per_second, PARTITIONS * _PARTITION_BYTES_PER_S
    if rate * _MIB > most:
        yield document.problem(
            _place(document, stream, "mib_per_second"),
            f"{rate} MiB per second for {stream.spelled}, but Firehose reads only"
            f" {most / _MIB:.1f} from a topic with {PARTITIONS} partition",
            "write `delivery: stream` for the busiest table, or split the domain",
        )


def _check_function(document: Document, stream: _Stream) -> Iterator[Problem]:
    mib = stream.settings.function.mib
    least = min(_least_event(table) for table in stream.tables)
    # Each event of a mass delete is followed by a tombstone, which has no bytes that count.
    wrapping = 2 * WRAPPING_BYTES["msk"]
    if mib > (fits := fitting_mib(least, wrapping)):
        yield document.problem(
            _place(document, stream, "function", "mib"),
            f"{mib:g} MiB of deletes of {least} bytes, each with a tombstone, may take"
            f" {bytes_of_a_call(mib, least, wrapping) / 1e6:.1f} MB per call for"
            f" {stream.spelled}, but the limit of a function is {MAX_FUNCTION_BYTES / 1e6:.1f}",
            f"write `mib: {fits:g}`",
        )


def bytes_of_a_call(mib: float, least: int, wrapping: int) -> float:
    """Return the bytes of a call with `mib` MiB of records of `least` bytes, each wrapped."""
    return mib * _MIB * (4 / 3 + wrapping / least)


def fitting_mib(least: int, wrapping: int) -> float:
    """Return the largest `mib` whose call has room for such records, but at least Firehose's."""
    fits = MAX_FUNCTION_BYTES / bytes_of_a_call(1, least, wrapping)
    return min(max(math.floor(fits * 10) / 10, MIN_FUNCTION_MIB), MAX_FUNCTION_MIB)


def _check_tables(document: Document, stream: _Stream) -> Iterator[Problem]:
    """Check the file size: each buffer is split into one file per table.

    Firehose documents no maximum number of tables.
    """
    count, mib = len(stream.tables), stream.settings.buffer.mib
    if count > mib:
        yield document.problem(
            _place(document, stream, "buffer", "mib"),
            f"{count} tables share {mib} MiB in {stream.spelled}: each file would be below 1 MiB",
            "split the domain, or increase `buffer: {mib: ...}` (at most 128)",
        )


def _check_longest(document: Document, stream: _Stream) -> Iterator[Problem]:
    """Check that a row arrives, or fails, within the time after which jobs no longer wait."""
    settings, most = stream.settings, int(DELIVERY_S)
    waiting = settings.buffer.seconds + settings.function.seconds + settings.retry_seconds
    longest = longest_delivery_s(waiting_s=waiting, retries=settings.function.retries)
    if longest > most:
        fits = settings.function.retries - math.ceil((longest - most) / CALL_TIMEOUT_S)
        yield document.problem(
            _place(document, stream, "function", "retries"),
            f"Firehose may append rows of {stream.spelled} after {math.ceil(longest / 60)} minutes,"
            f" but other jobs wait at most {most // 60}: each call may take"
            f" {CALL_TIMEOUT_S // 60} minutes",
            f"write `retries: {fits}`",
        )


def _least_event(table: TableOutline) -> int:
    """Return the bytes of an event whose values are all NULL."""
    flowing = (column for column in table.columns if not column.excluded)
    return _MIN_EVENT_BYTES + sum(
        len(column.source.encode()) + len('"":null,') for column in flowing
    )


def _place(document: Document, stream: _Stream, *path: str) -> Location:
    """Return the place of the setting, for the domain or for all; else the stream's table."""
    own: Location = (_SECTION, "domains", stream.domain or "", *path)
    for place in (own, (_SECTION, *path)):
        if document.get(*place) is not None:
            return place
    return own[:3] if stream.domain else (*stream.tables[0].location, "delivery")


def _delivered(tables: Sequence[TableOutline]) -> list[TableOutline]:
    return [table for table in tables if table.entry.get("delivery") == _SECTION]


def _streams(document: Document, tables: Sequence[TableOutline]) -> Iterator[_Stream]:
    """Yield every stream with valid settings."""
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
    """Return the settings; None if the model already refuses them."""
    try:
        return settings_of(section, domain)
    except (ValidationError, AttributeError, TypeError):
        return None
