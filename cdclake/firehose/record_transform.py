"""Firehose's function on Kafka topics: decode change events into changelog rows.

Firehose calls it with a batch of MSK records and appends the rows that it answers to Iceberg. Each
record id is answered once: `Ok` with the row, and with its changelog unless a query of the stream
finds that; `Dropped` if the record is not a change of a table (tombstones, heartbeats, cdclake's
own tables), or if its key was erased after it; `ProcessingFailed` if it cannot be decoded; Firehose
then keeps the bytes under the error prefix. Firehose may send a batch again: the rows are then the
same except for `cdc_ingested_at`, and the changelog accepts duplicates.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.erased_rows import Erased, ErasedEvent, ReadErased
from cdclake.firehose.rows import DeliveredRows, encode, otf_metadata
from cdclake.plan import Plan
from cdclake.widened_columns import ReadWidened, WidenedColumns

log = logging.getLogger()

MAX_ANSWER_BYTES = 6_000_000  # Lambda's 6 MB (6,291,456), minus what wraps the answer in transit
_ANSWER_BYTES = 96  # of a record's answer without its id, data and metadata
_VALUE = "kafkaRecordValue"

Answer = dict[str, Any]


class RecordTransform:
    """Decoder of record batches for those tables of a plan that Firehose delivers.

    `erased` and `widened` are called once per batch.
    """

    def __init__(
        self, plan: Plan, erased: ReadErased, widened: ReadWidened = WidenedColumns
    ) -> None:
        self._plan, self._erased, self._widened = plan, erased, widened
        self._followed, self._rows = WidenedColumns(), DeliveredRows(plan)
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
        """Return one answer for each record, in order; a bad record fails only itself.

        `ingested_at` is in microseconds since 1970. Raise an error if the erased keys or the
        widened columns are unknown.
        """
        erased = self._erased()
        self._follow()
        room = MAX_ANSWER_BYTES - sum(len(r["recordId"]) + self._answer_bytes for r in records)
        answers: list[Answer] = []
        failures: dict[str, list[str]] = {}
        dropped = 0
        for record in records:
            try:
                answer = self._answer(record, ingested_at, room, erased)
                room -= len(answer.get(_VALUE, ""))
            except ErasedEvent:
                answer, dropped = {"result": "Dropped"}, dropped + 1
            except Exception as error:  # a bug must not block the stream forever
                if not isinstance(error, RefusedEvent):
                    log.exception("unexpected error while decoding a record")
                answer = {"result": "ProcessingFailed"}
                is_refused = isinstance(error, RefusedEvent)
                reason = refusals.without_value(str(error)) if is_refused else type(error).__name__
                failures.setdefault(reason, []).append(_describe_place(record))
            answers.append({"recordId": record["recordId"], **answer})
        _log_failures(failures, len(records))
        if dropped:
            log.info("%d of %d dropped: their keys were erased", dropped, len(records))
        return answers

    def _follow(self) -> None:
        """Decode with the types that the changelogs have from now on."""
        widened = self._widened()
        if widened != self._followed:
            self._followed, self._rows = widened, DeliveredRows(widened.over(self._plan))

    def _answer(
        self, record: Mapping[str, Any], ingested_at: int, room: int, erased: Erased
    ) -> Answer:
        value = base64.b64decode(record.get(_VALUE) or b"")
        decoded = self._rows.decode(value, place_of(record), ingested_at, erased)
        if decoded is None:
            return {"result": "Dropped"}
        table, row = decoded
        encoded = base64.b64encode(encode(row).encode()).decode()
        if len(encoded) > room:
            raise RefusedEvent(refusals.TOO_LARGE)
        return {"result": "Ok", _VALUE: encoded, **self._metadata[table.changes]}


def _log_failures(failures: Mapping[str, Sequence[str]], of: int) -> None:
    for reason, places in failures.items():
        log.warning(
            "%d of %d failed: %s; %s",
            *(len(places), of, reason, places[0]),
            # CloudWatch counts the field `refused`; rows that a rule withholds are no fault.
            extra={_field_of(reason): len(places)},
        )


def _field_of(reason: str) -> str:
    return "withheld" if refusals.is_withheld(reason) else "refused"


def place_of(record: Mapping[str, Any]) -> Place:
    """Return the record's place in Kafka, which Firehose sends as text, if at all."""
    metadata = record.get("mskRecordMetadata") or {}
    partition, offset = metadata.get("partitionId"), metadata.get("offset")
    return Place(
        partition=None if partition is None else int(partition),
        offset=None if offset is None else int(offset),
    )


def _describe_place(record: Mapping[str, Any]) -> str:
    metadata = record.get("mskRecordMetadata") or {}
    return f"the first at {metadata.get('partitionId')}:{metadata.get('offset')}"
