"""Makes rows of change logs out of the Kafka records that Firehose hands over.

Firehose calls it with a batch of MSK records and appends the rows that it answers to Iceberg. Each
record id is answered once: Ok with the row, and the log it belongs to unless a query of the stream
finds that; Dropped for what is no change of a table (tombstones, heartbeats, our own tables);
ProcessingFailed for what cannot be a row, of which Firehose keeps the bytes under the error prefix.
A batch may come again: the rows are the same but for `cdc_ingested_at`, and the log takes them
again.

Beside it lies the plan (plan.json).
"""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.rows import DeliveredRows, encode, otf_metadata
from cdclake.plan import Plan

log = logging.getLogger()
log.setLevel(logging.INFO)

PLAN = Path(__file__).parent / "plan.json"
MAX_ANSWER_BYTES = 6_000_000  # Lambda's 6 MB (6,291,456), less what wraps an answer on its way
_ANSWER_BYTES = 96  # of a record's answer, beside its id, its data and its route
_VALUE = "kafkaRecordValue"

Answer = dict[str, Any]


class RecordTransform:
    """Answers batches for the plan's tables that Firehose delivers."""

    def __init__(self, plan: Plan) -> None:
        self._rows = DeliveredRows(plan)
        by_query = {t for stream in plan.deliveries if stream.route for t in stream.tables}
        self._metadata = {
            table.changes: {}
            if table.name in by_query
            else {"metadata": otf_metadata(plan.lake_database, table.changes)}
            for table in plan.tables
        }
        longest = max(len(json.dumps(metadata)) for metadata in self._metadata.values())
        self._answer_bytes = _ANSWER_BYTES + longest

    def answer(self, records: Sequence[Mapping[str, Any]], ingested_at: int) -> list[Answer]:
        """One answer for each record, in their order; no record makes another one fail.

        `ingested_at` is in microseconds since 1970.
        """
        room = MAX_ANSWER_BYTES - sum(len(r["recordId"]) + self._answer_bytes for r in records)
        answers: list[Answer] = []
        failures: dict[str, list[str]] = {}
        for record in records:
            try:
                answer = self._answer(record, ingested_at, room)
                room -= len(answer.get(_VALUE, ""))
            except Exception as error:  # a fault of ours must not hold up the stream for good
                if not isinstance(error, RefusedEvent):
                    log.exception("a record was not understood")
                answer = {"result": "ProcessingFailed"}
                reason = str(error) if isinstance(error, RefusedEvent) else type(error).__name__
                failures.setdefault(reason, []).append(_spelled_place(record))
            answers.append({"recordId": record["recordId"], **answer})
        for reason, places in failures.items():
            log.warning(
                "%d of %d failed: %s; %s",
                *(len(places), len(records), reason, places[0]),
                extra={"refused": len(places)},  # a field of its own, which CloudWatch counts
            )
        return answers

    def _answer(self, record: Mapping[str, Any], ingested_at: int, room: int) -> Answer:
        value = base64.b64decode(record.get(_VALUE) or b"")
        made = self._rows.decode(value, place_of(record), ingested_at)
        if made is None:
            return {"result": "Dropped"}
        table, row = made
        encoded = base64.b64encode(encode(row).encode()).decode()
        if len(encoded) > room:
            raise RefusedEvent(refusals.TOO_LARGE)
        return {"result": "Ok", _VALUE: encoded, **self._metadata[table.changes]}


def place_of(record: Mapping[str, Any]) -> Place:
    """Where Kafka has the record; Firehose says it in text, if it does."""
    metadata = record.get("mskRecordMetadata") or {}
    partition, offset = metadata.get("partitionId"), metadata.get("offset")
    return Place(
        partition=None if partition is None else int(partition),
        offset=None if offset is None else int(offset),
    )


def _spelled_place(record: Mapping[str, Any]) -> str:
    metadata = record.get("mskRecordMetadata") or {}
    return f"the first at {metadata.get('partitionId')}:{metadata.get('offset')}"


_transform: RecordTransform | None = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """What Firehose calls."""
    del context
    global _transform
    if _transform is None:
        _transform = RecordTransform(Plan.from_json(PLAN.read_text(encoding="utf-8")))
    return {"records": _transform.answer(event["records"], time.time_ns() // 1000)}
