"""Checks of events as Avro: the registry, and who else reads the topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.plan import GLUE_REGISTRY

_SECTION = "source"


def check_avro(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse Avro without a registry or with Firehose, and a registry without Avro."""
    source = document.mapping(_SECTION)
    registry = source.get("registry")
    if source.get("format") != "avro":
        for setting in ("registry", "compatibility"):
            if setting in source:
                yield document.key_problem(
                    (_SECTION, setting),
                    f"`{setting}` is for events as Avro",
                    "add `format: avro`, or remove this",
                )
        return
    if registry is None:
        yield document.problem(
            (_SECTION, "format"),
            "events as Avro need a schema registry",
            "add `registry: glue`, or `registry: {apicurio: URL}`",
        )
    elif registry != GLUE_REGISTRY and "compatibility" in source:
        yield document.key_problem(
            (_SECTION, "compatibility"),
            "Apicurio's compatibility is a rule of the registry itself",
            "set the rule there, and remove this",
        )
    for table in tables:
        if table.entry.get("delivery") == "firehose":
            yield document.problem(
                (*table.location, "delivery"),
                f"Firehose cannot deliver {table.spelled!r}: its function gets each event alone,"
                " and cannot ask a schema registry for each",
                "write `delivery: stream`, or `format: json` in `source:`",
            )
