"""Check of the stack of Firehose streams: its template fits CloudFormation's limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.model import Lake
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem

_MAX_BYTES = 1_000_000  # of a template
# Measured in templates without names, with room for a permissions boundary.
_REST, _STREAM, _LAKE_FORMATION, _TABLE, _ROUTE = 25_000, 5_600, 900, 150, 200
_PREFIX_CHARACTERS = 32  # the longest; a stream has it 20 times
# How often a stream has the characters of its name, and of the database.
_NAMES, _DATABASES = 22, 8


def check_delivery_size(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Report the first delivered table that the template of the streams has no room for."""
    size, streams = _REST, set[str]()
    for table in tables:
        if table.entry.get("delivery") != "firehose":
            continue
        domain, name = table.entry.get("domain"), table.name or ""
        stream = str(domain or name)
        if stream not in streams:
            streams.add(stream)
            size += _stream_bytes(document, stream)
        # Two lists of destination tables, and the names of the tables that the stack waits for.
        size += _TABLE + 3 * len(name) + 2 * len(_database(document))
        if size > _MAX_BYTES:
            yield document.problem(
                (*table.location, "delivery"),
                f"the stack of the Firehose streams has no room for {table.spelled!r}: its"
                " template would exceed CloudFormation's 1 MB",
                "write `delivery: stream` here and below, or group tables into a shared `domain:`",
            )
            return


def _stream_bytes(document: Document, stream: str) -> int:
    """Return the maximum bytes of a stream with its role, log, tags and route."""
    size = _STREAM + 20 * _PREFIX_CHARACTERS + _NAMES * len(stream)
    size += _DATABASES * len(_database(document))
    if document.get("lake", "lake_formation") is True:
        size += _LAKE_FORMATION
    tags = json.dumps(document.mapping("aws", "tags"))
    size += 4 * len(tags)  # role and stream have them, each with the keys `Key` and `Value`
    route = document.get("firehose", "domains", stream, "route")
    return size if route is None else size + _ROUTE + len(json.dumps(route))


def _database(document: Document) -> str:
    return str(document.get("lake", "database") or Lake().database)
