"""`python -m benchmarks.firehose`: the function behind Firehose beside a plain pass over its JSON.

CPU seconds of one process for the same events: what Firehose's function makes of whole batches,
from base64 to base64, and `json.loads` and `json.dumps` of the values alone. Takes some seconds and
needs no Spark; writes benchmarks/results/firehose.json.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.history import Change, History
from benchmarks.machine import machine, versions
from benchmarks.metering import metered
from benchmarks.orders import COLUMNS, KEY, ORDERS, PLAN, plan_of
from benchmarks.results import Bound, Measure, Run
from benchmarks.run import say
from benchmarks.session import PROJECT
from cdclake import naming
from cdclake.firehose.record_transform import RecordTransform

RESULTS = PROJECT / "benchmarks" / "results" / "firehose.json"
OURS, BARE = "firehose_changes", "loads_and_dumps"
TARGET = Bound(">=", 0.4)
EVENTS, BATCH, ROUNDS = 20_000, 1_000, 7
_COMMITTED_AT = 1_767_225_600_000_000

Record = dict[str, Any]


def main() -> int:
    """0 if the rows were right and the target was met, else 1."""
    changes = list(History(100_000, "zipf").changes(EVENTS))
    values = [json.dumps(_event(change), separators=(",", ":")).encode() for change in changes]
    batches = _batches(values)
    transform = RecordTransform(plan_of(replace(ORDERS, delivery="firehose")), dict)
    runs: dict[str, list[dict[str, float]]] = {OURS: [], BARE: []}
    for _ in range(ROUNDS):  # in turns, so that a busy machine is busy for both
        with metered() as ours:
            for batch in batches:
                transform.answer(batch, _COMMITTED_AT)
        with metered() as bare:
            for value in values:
                json.dumps(json.loads(value))
        runs[OURS].append(ours.figures())
        runs[BARE].append(bare.figures())
    answers = [a for batch in batches for a in transform.answer(batch, _COMMITTED_AT)]
    measure = _measure(runs, _wrong(changes, answers)).as_json()
    say(json.dumps({name: part for name, part in measure.items() if name != "runs"}))
    found = {"machine": machine(), "versions": versions(), "measures": {"firehose": measure}}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if measure["met"] else 1


def _measure(figures: dict[str, list[dict[str, float]]], wrong: str | None) -> Measure:
    about = {"subject": f"{EVENTS} orders in batches of {BATCH}"}
    ours = Run(OURS, about, wrong, figures[OURS])
    bare = Run(BARE, about, None, figures[BARE])
    return Measure(
        ours=f"wrong: {wrong}" if wrong else ours.median("cpu_seconds"),
        peers={BARE: bare.median("cpu_seconds")},
        targets={BARE: TARGET},
        runs=[ours, bare],
    )


def _event(change: Change) -> dict[str, Any]:
    """The event that Debezium would have written of the change."""
    micros = _COMMITTED_AT + change.number * 1000
    clocks = {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": micros * 1000}
    return {
        "before": dict.fromkeys(COLUMNS) | {KEY: change.key} if change.op == "d" else None,
        "after": None if change.op == "d" else _row(change),
        "source": {
            "version": "3.7.0.Final", "connector": "postgresql", "name": PLAN.name, **clocks,
            "snapshot": "false", "db": PLAN.source_database,
            "sequence": json.dumps([str(change.prev_commit_lsn), str(change.lsn)]),
            "schema": ORDERS.schema, "table": ORDERS.table, "txId": change.number + 500,
            "lsn": change.lsn, "xmin": None, "origin": None, "origin_lsn": None,
        },
        "transaction": None,
        "op": change.op,
        **clocks,
        naming.EPOCH: "1",
    }  # fmt: skip


def _row(change: Change) -> dict[str, Any]:
    draw = change.draw
    return {
        KEY: change.key,
        "customer_id": draw % 99_991,
        "quantity": draw % 9 + 1,
        "price": f"{draw % 100_000}.{draw % 100:02}",
        "status": ("new", "paid", "sent", "returned")[draw % 4],
        "note": f"order {draw:x} of a shop, to be packed with care" if draw % 3 else None,
        "paid": draw % 2 == 0,
        "created_at": "2026-01-01T00:00:00.000000Z",
        "updated_at": f"2026-01-01T{draw % 24:02}:{draw % 60:02}:00.{draw % 1_000_000:06}Z",
    }


def _batches(values: Sequence[bytes]) -> list[list[Record]]:
    records = [
        {
            "recordId": f"{offset:056}",
            "mskRecordMetadata": {"offset": str(offset), "partitionId": "0"},
            "kafkaRecordValue": base64.b64encode(value).decode(),
        }
        for offset, value in enumerate(values)
    ]
    return [records[at : at + BATCH] for at in range(0, len(records), BATCH)]


def _wrong(changes: Sequence[Change], answers: Sequence[Record]) -> str | None:
    """What is not as it should be in the rows; no time counts then."""
    for change, answer in zip(changes, answers, strict=True):
        if answer["result"] != "Ok":
            return f"the event {change.number} was refused"
        row = json.loads(base64.b64decode(answer["kafkaRecordValue"]))
        values = {KEY: change.key} if change.op == "d" else _row(change)
        expected = dict.fromkeys(COLUMNS) | values | {naming.LSN: change.lsn, naming.OP: change.op}
        if any(row[name] != value for name, value in expected.items()):
            return f"the event {change.number} has another row"
    return None


if __name__ == "__main__":
    sys.exit(main())
