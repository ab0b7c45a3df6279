"""Whether web logs go together with the rest of the file, and that there is a rest or web logs."""

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
_MIN_REQUEST_BYTES = 190  # bytes of a request as Fluent Bit sends it, with nothing in it
_DIRECT_PUT_MIB_PER_S = (
    5  # a second that Direct PUT takes for Iceberg in its fastest regions, without asking
)


def check_contents(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """A file has tables and their source, or web logs, or all of it."""
    has_tables, has_logs = "tables" in document.values, bool(document.mapping(_SECTION))
    remedy = "the JSON Schema (`cdclake schema`) describes it"
    if not has_tables and not has_logs:
        yield document.problem(
            ("tables",), "`tables` is missing", f"add it, or `weblogs:`; {remedy}"
        )
    if document.get("source") is None and (has_tables or not has_logs):
        yield document.problem(("source",), "`source` is missing", f"add `source:`; {remedy}")


def check_names(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """No stream and no table of web logs has the name of another's."""
    taken = {
        name: repr(table.spelled)
        for table in tables
        if table.name
        for name in (table.name, *(f"{table.name}{s}" for s in naming.DERIVED_SUFFIXES))
    }
    taken[naming.QUARANTINE] = "cdclake"
    domains = document.mapping("firehose", "domains")
    streams = {*domains, *(table.name for table in _delivered(tables))}
    for name, entry in _entries(document).items():
        place = (_SECTION, name)
        if name in streams:
            message = f"a stream of Firehose has the name {name!r} already"
            yield document.key_problem(place, message, "call the web logs otherwise")
        for made in request_tables(name, entry.route, tuple(entry.statuses)):
            if made in taken:
                message = f"the table {made!r} would be that of {taken[made]}, too"
                yield document.key_problem(place, message, "call the web logs otherwise")
                break
            taken[made] = f"the web logs {name!r}"


def check_settings(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """What is written has a use, and keeps within Firehose's quotas."""
    del tables
    for name, entry in _entries(document).items():
        place = (_SECTION, name)
        if entry.route == "day" and document.get(*place, "statuses") is not None:
            message = "with `route: day` no status has a table of its own"
            remedy = "remove this, or write `route: status`"
            yield document.key_problem((*place, "statuses"), message, remedy)
        if entry.source == "direct_put" and entry.mib_per_second > _DIRECT_PUT_MIB_PER_S:
            yield document.problem(
                (*place, "mib_per_second"),
                f"{entry.mib_per_second} MiB a second, and Direct PUT takes"
                f" {_DIRECT_PUT_MIB_PER_S} for"
                " Iceberg in us-east-1, us-west-2 and eu-west-1, and 1 elsewhere",
                "write `source: kinesis`",
            )
        size = bytes_of_a_call(entry.function.mib, _MIN_REQUEST_BYTES)
        if size > MAX_FUNCTION_BYTES:
            yield document.problem(
                (*place, "function", "mib"),
                f"{entry.function.mib} MiB of requests of {_MIN_REQUEST_BYTES} bytes may take"
                f" {size / 1e6:.1f} MB a call, and a function takes and gives"
                f" {MAX_FUNCTION_BYTES / 1e6:.1f}",
                "write `mib: 1`",
            )


def check_images(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """A deployment knows what to run."""
    del tables
    for name, entry in _entries(document).items():
        for image in ("nginx", "router"):
            if getattr(entry.images, image) is None:
                message = f"the web logs {name!r} have no image `{image}` to run on AWS"
                remedy = f"write `images: {{{image}: registry/name:tag@sha256:...}}` there"
                yield document.key_problem((_SECTION, name), message, remedy)


def _delivered(tables: Sequence[TableOutline]) -> list[TableOutline]:
    return [t for t in tables if t.entry.get("delivery") == "firehose" and "domain" not in t.entry]


def _entries(document: Document) -> dict[str, WebLogsEntry]:
    """Those that the model takes, by name."""
    found = {}
    for name, raw in document.mapping(_SECTION).items():
        try:
            found[name] = web_logs_settings(document.mapping("firehose"), raw)
        except (ValidationError, AttributeError, TypeError):
            continue
    return found
