"""Checks of web logs against the rest of the file, and that the file has tables or web logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from cdclake import naming
from cdclake.config.checks.firehose import MAX_FUNCTION_BYTES, bytes_of_a_call
from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.resolve_firehose import web_logs_settings
from cdclake.config.weblogs_model import WebLogsEntry
from cdclake.web_logs.model import request_tables

_SECTION = "weblogs"
_MIN_REQUEST_BYTES = 190  # an empty request as Fluent Bit sends it
_DIRECT_PUT_MIB_PER_S = 5  # default quota of Direct PUT for Iceberg in its fastest regions


def check_contents(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the file has tables with their source, or web logs, or both."""
    has_tables, has_logs = "tables" in document.values, bool(document.mapping(_SECTION))
    remedy = "see the JSON Schema (`cdclake schema`)"
    if not has_tables and not has_logs:
        yield document.problem(
            ("tables",), "`tables` is missing", f"add it, or `weblogs:`; {remedy}"
        )
    if document.get("source") is None and (has_tables or not has_logs):
        yield document.problem(("source",), "`source` is missing", f"add `source:`; {remedy}")


def check_names(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the streams and tables of web logs have unique names."""
    taken = {
        name: repr(table.spelled)
        for table in tables
        if table.name
        for name in naming.lake_objects(table.name)
    }
    taken[naming.QUARANTINE] = "cdclake"
    domains = document.mapping("firehose", "domains")
    streams = {*domains, *(table.name for table in _delivered(tables))}
    for name, entry in _entries(document).items():
        place = (_SECTION, name)
        if name in streams:
            message = f"a Firehose stream already has the name {name!r}"
            yield document.key_problem(place, message, "rename the web logs")
        for made in request_tables(name, entry.route, tuple(entry.statuses)):
            if made in taken:
                message = f"the table {made!r} would also be that of {taken[made]}"
                yield document.key_problem(place, message, "rename the web logs")
                break
            taken[made] = f"the web logs {name!r}"


def web_log_tables(document: Document) -> Iterator[str]:
    """Yield the tables of the valid web logs."""
    for name, entry in _entries(document).items():
        yield from request_tables(name, entry.route, tuple(entry.statuses))


def check_settings(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse settings without effect, and settings beyond Firehose's quotas."""
    del tables
    for name, entry in _entries(document).items():
        place = (_SECTION, name)
        if entry.route == "day" and document.get(*place, "statuses") is not None:
            message = "with `route: day` no status has a separate table"
            remedy = "remove this, or write `route: status`"
            yield document.key_problem((*place, "statuses"), message, remedy)
        if entry.source == "direct_put" and entry.mib_per_second > _DIRECT_PUT_MIB_PER_S:
            yield document.problem(
                (*place, "mib_per_second"),
                f"{entry.mib_per_second} MiB per second exceed the quota of Direct PUT for Iceberg:"
                f" {_DIRECT_PUT_MIB_PER_S} in us-east-1, us-west-2 and eu-west-1, and 1 elsewhere",
                "write `source: kinesis`",
            )
        size = bytes_of_a_call(entry.function.mib, _MIN_REQUEST_BYTES)
        if size > MAX_FUNCTION_BYTES:
            yield document.problem(
                (*place, "function", "mib"),
                f"{entry.function.mib} MiB of requests of {_MIN_REQUEST_BYTES} bytes may take"
                f" {size / 1e6:.1f} MB per call, but the limit of a function is"
                f" {MAX_FUNCTION_BYTES / 1e6:.1f}",
                "write `mib: 1`",
            )


def check_images(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that a deployment has the images to run."""
    del tables
    for name, entry in _entries(document).items():
        for image in ("nginx", "router"):
            if getattr(entry.images, image) is None:
                message = f"the web logs {name!r} have no image `{image}` to run on AWS"
                remedy = f"add `images: {{{image}: registry/name:tag@sha256:...}}` there"
                yield document.key_problem((_SECTION, name), message, remedy)


def _delivered(tables: Sequence[TableOutline]) -> list[TableOutline]:
    return [t for t in tables if t.entry.get("delivery") == "firehose" and "domain" not in t.entry]


def _entries(document: Document) -> dict[str, WebLogsEntry]:
    """Return the valid web logs by name."""
    found = {}
    for name, raw in document.mapping(_SECTION).items():
        try:
            found[name] = web_logs_settings(document.mapping("firehose"), raw)
        except (ValidationError, AttributeError, TypeError):
            continue
    return found
