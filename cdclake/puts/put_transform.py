"""Firehose's function on put tables: the user's handler, if there is one, then our rows."""

from __future__ import annotations

import base64
import copy
import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from cdclake.firehose.put_records import log_failures, transform_records
from cdclake.puts.put_row import PutRoutes
from cdclake.puts.put_table import TRANSFORM, PutStream

Handler = Callable[[dict[str, Any], Any], Any]
_PACKAGE = "cdclake_transform"  # prefix of the package that a user's folder is loaded as
_FAILED = "ProcessingFailed"
_NO_RESULT = "transform: its answer is neither Ok nor Dropped"


class PutTransform:
    """Conversion of a call's records into rows of the stream's tables."""

    def __init__(self, put: PutStream, before: Handler | None = None) -> None:
        self._rows, self._before = PutRoutes(put), before

    def answer(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """Answer a batch of records from Firehose."""
        records = event["records"]
        if self._before is None:
            return {"records": transform_records(records, self._rows.row)}
        ready, settled = _run_before(self._before, event, context)
        made = transform_records(ready, self._rows.row, others=settled.values())
        settled |= {answer["recordId"]: answer for answer in made}
        return {"records": [settled[record["recordId"]] for record in records]}


def load_handler(folder: Path, name: str) -> Handler:
    """Load `handler` from the user's folder; other files there are imported relatively.

    `name` separates the folders of several streams in one process.
    """
    package = ModuleType(f"{_PACKAGE}_{name}")
    for loaded in [m for m in sys.modules if m.startswith(f"{package.__name__}.")]:
        del sys.modules[loaded]
    package.__path__ = [str(folder)]
    sys.modules[package.__name__] = package
    module = importlib.import_module(f"{package.__name__}.{Path(TRANSFORM).stem}")
    handler: Handler = module.handler
    return handler


def _run_before(
    before: Handler, event: Mapping[str, Any], context: Any
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the records to convert, with the handler's data, and the answers to all others.

    An error of the handler is raised: Firehose repeats the call, and then keeps its records with
    the message.
    """
    records = event["records"]
    answers: dict[str, list[dict[str, Any]]] = {}
    # As in Firehose, the handler may change its event.
    for answer in before(copy.deepcopy(dict(event)), context)["records"]:
        if isinstance(answer, dict) and isinstance(answer.get("recordId"), str):
            answers.setdefault(answer["recordId"], []).append(answer)
    ready: list[dict[str, Any]] = []
    settled: dict[str, dict[str, Any]] = {}
    failures: dict[str, int] = {}
    for record in records:
        found = answers.get(record["recordId"], [])
        reason = _wrong(found)
        if reason is not None:
            failures[reason] = failures.get(reason, 0) + 1
            settled[record["recordId"]] = {"recordId": record["recordId"], "result": _FAILED}
        elif found[0]["result"] == "Dropped":
            settled[record["recordId"]] = {"recordId": record["recordId"], "result": "Dropped"}
        else:
            ready.append({**record, "data": found[0]["data"]})
    log_failures(failures, len(records))
    return ready, settled


def _wrong(answers: list[dict[str, Any]]) -> str | None:
    """Return why a record cannot be converted after the user's handler, or None."""
    if len(answers) != 1:
        return f"transform: its answer has a record {len(answers)} times"
    result = answers[0].get("result")
    if result == "Dropped":
        return None
    if result != "Ok":
        return _NO_RESULT  # without the result, which may be any text of the record
    try:
        base64.b64decode(answers[0]["data"], validate=True)
    except (KeyError, TypeError, ValueError):
        return "transform: its answer has no data in base64"
    return None
