"""P4: Kafka records to checked rows in memory, quarantine included, beside a bare `from_json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.dataset import DataSet
from benchmarks.expected import same_rows
from benchmarks.kafka_records import IS_REFUSED, REFUSED_EVERY, records_of
from benchmarks.metering import metered
from benchmarks.orders import COLUMNS, KEY, LOG_COLUMNS, ORDERS, PLAN
from benchmarks.ours import Ours
from benchmarks.results import Bound, Measure, Run, worst_subject
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.storage import in_folder
from cdclake import naming
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.runtime.python_worker import reduce_task_overhead
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.deduplicate import identity
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.jobs.stream.partition_summary import summarize
from cdclake.jobs.stream.plan_decoders import bytes_of, decoders_of, runs_of
from cdclake.jobs.stream.quarantine import quarantine_files
from cdclake.jobs.stream.refused_records import refused_records

BARE = "bare_from_json"
ROWS = "dropped"  # by both, of what is timed
_DECODED = "accepted bigint, first bigint, last bigint, refused string"
_COMPARED = tuple(name for name, kind in LOG_COLUMNS if not kind.startswith("array"))


def measure_decode(size: Size, work: Path) -> Measure:
    """Ours and a bare parsing in one session; of the subject where ours is worst."""
    data = events(size, work).make()
    arena = Arena(work, in_folder)
    runs = [run for refuse in (False, True) for run in _runs(arena, data, refuse)]
    return worst_subject(runs, OURS, lambda _: {BARE: Bound(">=", 2.0)})


def events(size: Size, work: Path) -> DataSet:
    """Batches of which records are made."""
    return DataSet(
        folder=work / "data",
        rows=size.rows,
        changes=size.events,
        batches=size.batches,
        warm_up=size.warm_up,
        keys="zipf",
    )


def _runs(arena: Arena, data: DataSet, refuse: bool) -> list[Run]:
    subject = f"1 in {REFUSED_EVERY} refused" if refuse else "all accepted"
    with arena.place("decode") as place:
        question = {
            "batches": [str(file) for file in data.batch_files],
            "refuse": refuse,
            "written": str(place.folder / "written"),
        }
        figures = place.ask("benchmarks.decode", question)
        written = place.folder / "written"
        accepted = f"NOT ({IS_REFUSED})" if refuse else "true"
        checked = {
            OURS: same_rows(_COMPARED, data.batch_files, written / OURS, accepted),
            BARE: same_rows(COLUMNS, data.batch_files, written / BARE, accepted),
        }
    about = {"subject": subject, "events": data.changes, "rows": ROWS}
    return [Run(who, about, checked[who], data.counted(figures[who])) for who in (OURS, BARE)]


def take(
    *, warehouse: str, scratch: str, batches: Sequence[str], refuse: bool, written: str
) -> dict[str, list[Mapping[str, Any]]]:
    """Figures of each batch, by contender; the rows they made lie below `written` in the end."""
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        ours = Ours(spark, warehouse)
        ours.load(spark.read.parquet(batches[0]).limit(0))
        # Held between batches, as the stream does.
        quarantine = TableHandle(ours.lake, naming.QUARANTINE)
        figures: dict[str, list[Mapping[str, Any]]] = {OURS: [], BARE: []}
        for batch in batches:
            changes = spark.read.parquet(batch)
            records = records_of(changes, refuse=refuse).cache()
            refused = changes.where(IS_REFUSED).count() if refuse else 0
            expected = (records.count() - refused, refused)
            figures[OURS].append(_read(quarantine, ours.lake, records, expected, f"{written}/ours"))
            figures[BARE].append(_parse(records, f"{written}/{BARE}"))
            records.unpersist()
        return figures
    finally:
        spark.stop()


def _read(
    quarantine: TableHandle,
    lake: LakeTables,
    records: DataFrame,
    expected: tuple[int, int],
    folder: str,
) -> Mapping[str, Any]:
    """Return the figures; AssertionError unless as many records as expected are accepted, refused.

    The rows that are compared are decoded again afterwards, since a task drops those that are
    timed.
    """
    decoder = EventDecoder(ORDERS, PLAN)
    with metered() as meter:
        accepted, offsets, files = decode_in_tasks(records, quarantine.target())
        refused = quarantine_files(files, offsets, lake, ORDERS) if files else 0
    found = (accepted, refused)
    assert found == expected, f"accepted and refused are {found}, not {expected}"
    rows = decoder.decode(records).where(F.col(REFUSAL).isNull())
    rows.select(*_COMPARED).write.mode("append").parquet(folder)
    return meter.figures()


def decode_in_tasks(
    records: DataFrame, quarantine: FileTarget
) -> tuple[int, tuple[int, int], list[str]]:
    """Decode as the stream's job does: the rows stay in the task, refused records are written.

    Returns the number of accepted ones, the offsets of all, and the files of refused ones.
    """
    passed = records.select("topic", "partition", "offset", "key", "value", "headers")
    task = _DecodeOnly(PLAN.to_json(), quarantine)
    rows = passed.mapInArrow(task, _DECODED).collect()
    offsets = min(row["first"] for row in rows), max(row["last"] for row in rows)
    files = [row["refused"] for row in rows if row["refused"]]
    return sum(row["accepted"] for row in rows), offsets, files


@dataclass(frozen=True, slots=True)
class _DecodeOnly:
    plan_json: str
    quarantine: FileTarget

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_task_overhead()
        decoder = decoders_of(self.plan_json).decoder(ORDERS)
        decoded: dict[int, list[pa.Table]] = {}
        refused: list[pa.Table] = []
        for batch in batches:
            for _, partition, records in runs_of(batch):
                values, keys = (bytes_of(records[name]) for name in ("value", "key"))
                rows = decoder.decode(values, keys, partition, records["offset"].to_numpy())
                decoded.setdefault(partition, []).append(rows)
                if rows[REFUSAL].null_count < rows.num_rows:
                    refused.append(refused_records(records, rows, ORDERS))
        summaries = [
            summarize(pa.concat_tables(blocks), partition, identity(ORDERS))
            for partition, blocks in decoded.items()
        ]
        if not summaries:
            return
        kept = pa.concat_tables(refused) if refused else None
        file = self.quarantine.write(kept) if kept is not None and kept.num_rows else None
        yield pa.RecordBatch.from_pydict(
            {
                "accepted": [sum(each.accepted for each in summaries)],
                "first": [min(each.first_offset for each in summaries)],
                "last": [max(each.next_offset for each in summaries) - 1],
                "refused": pa.array([file], pa.string()),
            }
        )


def _parse(records: DataFrame, folder: str) -> Mapping[str, Any]:
    rows = parsed(records)
    with metered() as meter:
        evaluate(rows)
    offset = F.col("offset").alias(naming.OFFSET)
    rows.select(*COLUMNS, offset).write.mode("append").parquet(folder)
    return meter.figures()


def evaluate(rows: DataFrame) -> None:
    """Evaluate every column of every row, and keep none."""
    rows.write.format("noop").mode("overwrite").save()


def parsed(records: DataFrame) -> DataFrame:
    """The same columns as ours, as `from_json` gives them, right or not."""
    kinds = dict(LOG_COLUMNS)
    row = ", ".join(f"{name}: {kinds[name]}" for name in COLUMNS)
    event = (
        f"struct<after: struct<{row}>, op: string, cdc_epoch: string, "
        "source: struct<lsn: bigint, sequence: string, txId: bigint, ts_us: bigint>>"
    )
    parsed = records.select(
        F.col("partition"),
        F.col("offset"),
        F.from_json(F.col("value").cast("string"), event).alias("event"),
        F.from_json(F.col("key").cast("string"), "struct<id: bigint>").alias("key"),
    )
    values = (F.col("key.id" if c == KEY else f"event.after.{c}").alias(c) for c in COLUMNS)
    facts = map(F.col, ("partition", "offset", "event.op", "event.cdc_epoch", "event.source.*"))
    return parsed.select(*values, *facts)
