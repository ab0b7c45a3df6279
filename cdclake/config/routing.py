"""Where a jq query sends records: what Firehose's `MetadataExtraction` does, through real libjq.

Firehose runs jq 1.6 on what its function answered. The package `jq` is kept at the version whose
wheel holds libjq 1.6: a newer one takes syntax and functions that Firehose has not. Numbers are
doubles there and here. What Firehose does with records that a query sends nowhere is by its
documentation: they go to the error prefix.
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

MAX_CHARACTERS = 5120  # of a processor's parameter, by Firehose's API
OPERATIONS = ("insert", "update", "delete")
_CHILD = Path(__file__).with_name("jq_child.py")
_TIMEOUT_S = 20
_DATABASE, _TABLE, _OPERATION = (
    "destinationDatabaseName", "destinationTableName", "operation",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one record goes."""

    database: str
    table: str
    operation: str = "insert"


class Nowhere(str):
    """Why a record goes nowhere."""

    __slots__ = ()


def destinations(query: str, records: Sequence[bytes]) -> list[Destination | Nowhere]:
    """Where the query sends each record, which never fails for the others.

    Refused if the query does not compile, does not end, or breaks off.
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
        message = f"the query has not ended after {_TIMEOUT_S} seconds"
        raise Refused(message, "write one that yields one object and ends") from None
    if told.returncode != 0 or not told.stdout:
        raise Refused(
            "the query breaks off jq", "write one without `input`, `include` and large values"
        )
    answer = json.loads(told.stdout)
    if "error" in answer:
        said = " ".join(str(answer["error"]).replace("jq: ", "").split())
        raise Refused(f"jq 1.6 does not take the query: {said}", "correct it; jq 1.7 has more")
    return list(answer["results"])


def _destination(yielded: list[Any] | str) -> Destination | Nowhere:
    if isinstance(yielded, str):
        return Nowhere(f"the query fails: {yielded}")
    if len(yielded) != 1 or not isinstance(yielded[0], dict):
        return Nowhere(f"the query yields {len(yielded)} values, and not one object")
    found = yielded[0]
    for name in (_DATABASE, _TABLE):
        if not isinstance(found.get(name), str) or not found[name]:
            return Nowhere(f"the query yields no {name}")
    operation = found.get(_OPERATION) or "insert"
    if operation not in OPERATIONS:
        return Nowhere(f"the query yields the operation {operation!r}")
    return Destination(found[_DATABASE], found[_TABLE], operation)
