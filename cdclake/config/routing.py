"""Routing of records by a jq query, like Firehose's `MetadataExtraction`, through the real libjq.

Firehose runs jq 1.6 on the output of its function. The package `jq` is pinned to the version whose
wheel contains libjq 1.6: a newer one accepts syntax and functions that Firehose does not have.
Numbers are doubles in both. According to its documentation, Firehose writes records that a query
does not route to the error prefix.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdclake.config.problems import Refused

MAX_CHARACTERS = 5120  # limit of a processor's parameter in Firehose's API
OPERATIONS = ("insert", "update", "delete")
_CHILD = Path(__file__).with_name("jq_child.py")
_TIMEOUT_S = 20
_DATABASE, _TABLE, _OPERATION = (
    "destinationDatabaseName", "destinationTableName", "operation",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Destination:
    """Destination of one record."""

    database: str
    table: str
    operation: str = "insert"


class Nowhere(str):
    """Reason why a record is not routed."""

    __slots__ = ()


def destinations(query: str, records: Sequence[bytes]) -> list[Destination | Nowhere]:
    """Return the destination of each record; a failing record does not affect the others.

    Raises `Refused` if the query does not compile, does not end, or aborts.
    """
    texts = [_json_text(record) for record in records]
    readable = [text for text in texts if text is not None]
    results = iter(_ask(query, readable))
    unreadable = Nowhere("the record is not JSON")
    return [unreadable if text is None else _destination(next(results)) for text in texts]


def _json_text(record: bytes) -> str | None:
    try:
        text = record.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return text


def _ask(query: str, records: Sequence[str]) -> list[Any]:
    question = json.dumps({"query": query, "records": records})
    alone = [sys.executable, "-I", str(_CHILD)]
    try:
        told = subprocess.run(
            alone, input=question, capture_output=True, text=True, env={}, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        message = f"the query did not end within {_TIMEOUT_S} seconds"
        raise Refused(message, "write a query that yields one object and ends") from None
    if told.returncode != 0 or not told.stdout:
        raise Refused(
            "the query aborts jq", "write a query without `input`, `include` and large values"
        )
    answer = json.loads(told.stdout)
    if "error" in answer:
        said = " ".join(str(answer["error"]).replace("jq: ", "").split())
        raise Refused(f"invalid jq 1.6 query: {said}", "correct it; do not use features of jq 1.7")
    return list(answer["results"])


def _destination(yielded: list[Any] | str) -> Destination | Nowhere:
    if isinstance(yielded, str):
        return Nowhere(f"the query fails: {yielded}")
    if len(yielded) != 1 or not isinstance(yielded[0], dict):
        return Nowhere(f"the query yields {len(yielded)} values instead of one object")
    found = yielded[0]
    for name in (_DATABASE, _TABLE):
        if not isinstance(found.get(name), str) or not found[name]:
            return Nowhere(f"the query yields no {name}")
    operation = found.get(_OPERATION) or "insert"
    if operation not in OPERATIONS:
        return Nowhere(f"the query yields the operation {operation!r}")
    return Destination(found[_DATABASE], found[_TABLE], operation)
