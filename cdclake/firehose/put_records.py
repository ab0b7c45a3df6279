"""Firehose's call with records that producers put directly or into Kinesis.

Firehose calls the function with a batch and appends the rows that it answers. Each record id is
answered once: `Ok` with the row, or `ProcessingFailed` if the record does not fit; Firehose then
keeps the bytes under the error prefix. Firehose may send a batch again: the rows are then the same.
"""

from __future__ import annotations

import base64
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

log = logging.getLogger()

MAX_ANSWER_BYTES = 6_000_000  # Lambda's 6 MB (6,291,456), minus what wraps the answer in transit
_ANSWER_BYTES = 64  # of a record's answer without its id and data


class PutRow(NamedTuple):
    """Row in JSON, and the metadata that routes it; without it Firehose finds the table."""

    data: str
    metadata: Mapping[str, Any] | None = None


Answer = dict[str, Any]
ToRow = Callable[[bytes, int], PutRow]  # of a record's bytes and arrival in milliseconds


class Unfit(ValueError):
    """Record that cannot become a row; the message is the reason."""


def transform_records(
    records: Sequence[Mapping[str, Any]], to_row: ToRow, *, others: Iterable[Answer] = ()
) -> list[Answer]:
    """Return one answer for each record, in order; a bad record fails only itself.

    `others` are the call's answers without a row that the caller adds: all share its size.
    """
    answered = itertools.chain(records, others)
    room = MAX_ANSWER_BYTES - sum(len(each["recordId"]) + _ANSWER_BYTES for each in answered)
    failures: dict[str, int] = {}
    answers: list[Answer] = []
    for record in records:
        answer: Answer = {"result": "ProcessingFailed"}
        try:
            row = _row(record, to_row)
            size = sum(map(len, (row["data"], json.dumps(row.get("metadata", "")))))
            if size > room:
                raise Unfit("the rows of this call exceed the size of a function's answer")
            room -= size
            answer = {"result": "Ok", **row}
        except Exception as error:  # also a bug: the other records must not wait for its fix
            reason = str(error) if isinstance(error, Unfit) else type(error).__name__
            failures[reason] = failures.get(reason, 0) + 1
        answers.append({"recordId": record["recordId"], **answer})
    log_failures(failures, len(records))
    return answers


def log_failures(failures: Mapping[str, int], of: int) -> None:
    """Log each reason once, with the number of records in a separate field for CloudWatch."""
    for reason, count in failures.items():
        log.warning("%d of %d failed: %s", count, of, reason, extra={"refused": count})


def _row(record: Mapping[str, Any], to_row: ToRow) -> Answer:
    made = to_row(base64.b64decode(record["data"]), record["approximateArrivalTimestamp"])
    data = base64.b64encode(made.data.encode()).decode()
    return {"data": data} if made.metadata is None else {"data": data, "metadata": made.metadata}
