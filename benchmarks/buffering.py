"""Buffers of Firehose side by side: commits, files, requests and freshness of each.

Nine put tables get the same records at the same rate through the local Firehose, which buffers as
long as the file declares for each. A figure counts only if its table holds every record once.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.put_lake import Commit, PutLake, put_lake
from benchmarks.sizes import Buffering, Size
from cdclake.config.resolve import load_plan
from cdclake.local.demo.freshness import freshness
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.handlers import handler_of
from cdclake.local.firehose.records import Record
from cdclake.plan import Plan

BUFFER_MIB = (1, 64, 128)
_COLUMNS = {
    "number": "bigint",
    "put_at": "timestamptz",
    "customer_id": "bigint",
    "sku": "text",
    "quantity": "integer",
    "price": "numeric(12,2)",
    "status": "text",
    "note": "text",
    "address": "jsonb",
}
_TEXT = (
    "order parcel left with the neighbour at green door please ring twice gift wrapped fragile"
    " glass do not bend leave by garage after six call before delivery second floor no lift"
    " invoice by mail returned paid partly replaced colour blue instead of grey size larger"
)
_WORDS = _TEXT.split()


class Puts(NamedTuple):
    """Records that were put with one call, at `at` in seconds since 1970."""

    at: float
    records: int


def measure_buffering(size: Size, work: Path) -> dict[str, Any]:
    """Return what each buffer did, with the rate and the bytes of a record."""
    asked, folder = size.buffering, work / "buffering"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    plan = _plan(asked, folder)
    process, began = psutil.Process(), time.monotonic()
    before = sum(process.cpu_times()[:2])
    with put_lake(folder, plan) as (lake, firehose):
        tables = [stream.name for stream in plan.put_streams]
        start = {table: lake.aws.counts(table) for table in tables}
        lake.start()
        puts = _put(asked, tables, firehose)
        lake.stop()
        cpu = sum(process.cpu_times()[:2]) - before
        share = cpu / (time.monotonic() - began)
        found = [_delivered(plan, lake, table, start[table], puts[table]) for table in tables]
        lake.drain()
        wrong = {table: _wrong(lake, table, puts[table]) for table in tables}
    record, row = _bytes_of_records(plan, folder)
    return {
        "seconds": asked.seconds,
        "records_a_second": asked.records_a_second,
        "record_bytes": record,
        "row_bytes": row,
        "cpu_of_one_core": round(share, 3),
        "runs": [{**each, "wrong": wrong[each["table"]]} for each in found],
    }


def _plan(asked: Buffering, folder: Path) -> Plan:
    """Load the pipeline file of the nine tables, which is as a user would write it."""
    tables = {
        f"every_{seconds}_s_{mib}_mib": {
            "columns": _COLUMNS,
            "key": ["number"],
            "function": {"seconds": 0},
            "buffer": {"seconds": seconds, "mib": mib},
        }
        for seconds, mib in product(asked.buffer_seconds, BUFFER_MIB)
    }
    file = folder / "buffering.yaml"
    file.write_text(json.dumps({"version": 1, "name": "buffering", "puts": tables}))
    return load_plan(file)


def _put(asked: Buffering, tables: Sequence[str], firehose: Any) -> dict[str, list[Puts]]:
    """Put the records of each second into every stream; return what was put and when."""
    done: dict[str, list[Puts]] = {table: [] for table in tables}
    start = time.time()
    for second in range(asked.seconds):
        time.sleep(max(start + second - time.time(), 0))
        first = second * asked.records_a_second
        numbers = range(first, first + asked.records_a_second)
        records = [{"Data": encode_record(number, time.time())} for number in numbers]
        for table in tables:
            done[table].append(Puts(time.time(), len(records)))
            answer = firehose.put_record_batch(DeliveryStreamName=table, Records=records)
            assert answer["FailedPutCount"] == 0, answer
    time.sleep(max(start + asked.seconds - time.time(), 0))
    return done


def encode_record(number: int, at: float) -> bytes:
    """Return the order with this number as JSON; its text is drawn from its number."""
    draw = random.Random(number)
    return json.dumps(
        {
            "number": number,
            "put_at": datetime.fromtimestamp(at, UTC).isoformat(),
            "customer_id": draw.randrange(10**6),
            "sku": f"{draw.getrandbits(64):016x}",
            "quantity": draw.randrange(1, 10),
            "price": f"{draw.randrange(10**6)}.{draw.randrange(100):02}",
            "status": draw.choice(("new", "paid", "sent", "returned")),
            "note": " ".join(draw.choices(_WORDS, k=60)),
            "address": {
                "street": f"{draw.choice(_WORDS)} {draw.randrange(400)}",
                "postcode": f"{draw.randrange(10**5):05}",
                "city": draw.choice(_WORDS),
            },
        }
    ).encode()


def _bytes_of_records(plan: Plan, folder: Path) -> tuple[int, int]:
    """Return the average bytes of a record, and of the row that the function makes of it."""
    stream = plan.put_streams[0]
    records = [Record(0, number, 0, encode_record(number, time.time())) for number in range(500)]
    made, _ = LocalFunction(handler_of(stream, plan, folder, dict), stream).transform(records)
    sizes = ([len(r.value or b"") for r in records], [len(row.data) for row in made])
    return round(statistics.fmean(sizes[0])), round(statistics.fmean(sizes[1]))


def _delivered(
    plan: Plan, lake: PutLake, table: str, start: dict[str, int], puts: Sequence[Puts]
) -> dict[str, Any]:
    """Return the figures of one delivery, from the first record until its last commit."""
    [stream] = [stream for stream in plan.put_streams if stream.name == table]
    commits, sizes = lake.tables.commits(table), lake.tables.file_bytes(table)
    if not commits:
        raise RuntimeError(f"{table} had no commit: measure for longer")
    counts = lake.aws.counts(table)
    fresh = freshness(ages(puts, commits))
    return {
        "table": table,
        "buffer_seconds": stream.buffer_seconds,
        "buffer_mib": stream.buffer_mib,
        "commits": len(commits),
        "rows": sum(commit.rows for commit in commits),
        "files": len(sizes),
        "mean_file_bytes": round(statistics.fmean(sizes)),
        "seconds_a_commit": round((commits[-1].at - puts[0].at) / len(commits), 2),
        "requests": {kind: counts[kind] - start[kind] for kind in counts},
        "freshness_p50_s": _seconds(fresh.p50_ms),
        "freshness_p95_s": _seconds(fresh.p95_ms),
    }


def ages(puts: Sequence[Puts], commits: Sequence[Commit]) -> Iterator[tuple[float, int]]:
    """Yield (milliseconds from put until readable, records), in the order of the records."""
    left = [[put.at, put.records] for put in puts]
    position = 0
    for commit in commits:
        rows = commit.rows
        while rows:
            at, records = left[position]
            taken = min(rows, int(records))
            yield (commit.at - at) * 1000, taken
            rows -= taken
            left[position][1] -= taken
            position += left[position][1] == 0


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 1)


def _wrong(lake: PutLake, table: str, puts: Sequence[Puts]) -> str | None:
    numbers, expected = lake.tables.values(table, "number"), sum(put.records for put in puts)
    if sorted(numbers) == list(range(expected)):
        return None
    return f"{len(numbers)} rows of {len(set(numbers))} records, {expected} were put"
