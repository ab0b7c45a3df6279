"""Checks of web logs, and that the file has anything that flows into the lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.resolve_firehose import web_logs_settings
from cdclake.config.weblogs_model import WebLogsEntry

_SECTION = "weblogs"


def check_contents(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the file has tables with their source, web logs or put tables."""
    has_tables = "tables" in document.values
    has_others = bool(document.mapping(_SECTION) or document.mapping("puts"))
    remedy = "see the JSON Schema (`cdclake schema`)"
    if not has_tables and not has_others:
        yield document.problem(
            ("tables",), "`tables` is missing", f"add it, `weblogs:` or `puts:`; {remedy}"
        )
    if document.get("source") is None and (has_tables or not has_others):
        message, remedy = "`source` is missing", f"add `source:`; {remedy}"
        if "source" in document.values:
            message = "`source` must be a mapping, not nothing"
            remedy = "write `database: NAME` beneath it"
        yield document.problem(("source",), message, remedy)


def check_settings(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse statuses without effect."""
    del tables
    for name, entry in web_log_entries(document).items():
        place = (_SECTION, name)
        if entry.route == "day" and document.get(*place, "statuses") is not None:
            message = "with `route: day` no status has a separate table"
            remedy = "remove this, or write `route: status`"
            yield document.key_problem((*place, "statuses"), message, remedy)


def check_images(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that a deployment has the images to run."""
    del tables
    for name, entry in web_log_entries(document).items():
        for image in ("nginx", "router"):
            if getattr(entry.images, image) is None:
                message = f"the web logs {name!r} have no image `{image}` to run on AWS"
                remedy = (
                    f"add `images: {{{image}: registry/name:tag@sha256:...}}` there, or"
                    " `images: build`"
                )
                yield document.key_problem((_SECTION, name), message, remedy)


def web_log_entries(document: Document) -> dict[str, WebLogsEntry]:
    """Return the valid web logs by name."""
    found = {}
    for name, raw in document.mapping(_SECTION).items():
        try:
            found[name] = web_logs_settings(document.mapping("firehose"), raw)
        except (ValidationError, AttributeError, TypeError):
            continue
    return found
