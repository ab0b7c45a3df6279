"""P3: batches of nothing but inserts, into log and table, beside a bare Spark append."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.dataset import DataSet
from benchmarks.expected import same_rows
from benchmarks.history import INSERTS_ONLY
from benchmarks.long_log import FILLER_OFFSET, lengthen
from benchmarks.metering import metered
from benchmarks.orders import DATABASE, LOG_COLUMNS, ORDERS, PLAN
from benchmarks.ours import Ours
from benchmarks.results import Bound, Measure, Run, worst_subject
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.storage import in_folder
from cdclake import naming
from cdclake.iceberg.ddl import create_table
from cdclake.iceberg.schemas import TableSchema
from cdclake.jobs.iceberg.lake_tables import LakeTables

BARE = "bare_append"
_TARGETS = {"log": 1.0, "long_log": 1.0, "table": 0.9}
_BARE_TABLE = "bare"
_BARE_SCHEMA = TableSchema(
    name=_BARE_TABLE, columns=LOG_COLUMNS, properties={"format-version": str(PLAN.format_version)}
)
_COMPARED = tuple(name for name, kind in LOG_COLUMNS if not kind.startswith("array"))
_IN_BOTH = ("id", "customer_id", "note", "paid", naming.POSITION)  # of one type in log and table


def measure_append(size: Size, work: Path) -> Measure:
    """Ours and a bare append in one session, batch by batch; of the subject where ours is worst."""
    data = inserts(size, work).make()
    arena = Arena(work, in_folder)
    runs = [run for subject in _TARGETS for run in _runs(arena, data, subject, size.log_files)]
    return worst_subject(runs, OURS, append_targets)


def append_targets(subject: str) -> Mapping[str, Bound]:
    """Return the bounds of a subject of P3."""
    return {BARE: Bound(">=", _TARGETS[subject])}


def inserts(size: Size, work: Path) -> DataSet:
    """Batches of nothing but new rows."""
    return DataSet(
        folder=work / "data",
        rows=size.rows,
        changes=size.events,
        batches=size.batches,
        warm_up=size.warm_up,
        keys="uniform",
        mix=INSERTS_ONLY,
    )


def _runs(arena: Arena, data: DataSet, subject: str, log_files: int) -> list[Run]:
    files = log_files if subject == "long_log" else 0
    about: dict[str, Any] = {"subject": subject, "rows": data.rows, "inserts": data.changes}
    with arena.place(f"append-{subject}") as place:
        question = {
            "base": str(data.base) if subject == "table" else None,
            "batches": [str(file) for file in data.batch_files],
            "log_files": files,
            "written": str(place.folder / "written"),
        }
        figures = place.ask("benchmarks.append", question)
        wrongs = {}
        for contender in figures:
            written = place.folder / "written" / contender
            columns = _IN_BOTH if subject == "table" else _COMPARED
            wrongs[contender] = same_rows(columns, data.batch_files, written)
    return [
        Run(contender, {**about, "log_files": files}, wrongs[contender], data.counted(batches))
        for contender, batches in figures.items()
    ]


def take(
    *,
    warehouse: str,
    scratch: str,
    base: str | None,
    batches: Sequence[str],
    log_files: int,
    written: str,
) -> dict[str, list[Mapping[str, Any]]]:
    """Figures of each batch, by contender; what they wrote lies below `written` in the end."""
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        ours = Ours(spark, warehouse)
        ours.load(spark.read.parquet(base) if base else spark.read.parquet(batches[0]).limit(0))
        create_bare_table(ours.lake)
        if log_files:
            filler = spark.read.parquet(batches[0]).limit(1)
            _fill(ours, filler, log_files)
        figures: dict[str, list[Mapping[str, Any]]] = {OURS: [], BARE: []}
        for batch in batches:
            rows = spark.read.parquet(batch).cache()
            rows.count()
            figures[OURS].append(_apply(ours, rows) if base else _measure(ours.append, rows))
            figures[BARE].append(_measure(lambda rows: append_bare(ours.lake, rows), rows))
            rows.unpersist()
        _keep(ours.lake, ORDERS.name if base else ORDERS.changes, f"{written}/ours")
        _keep(ours.lake, _BARE_TABLE, f"{written}/{BARE}")
        return figures
    finally:
        spark.stop()


def create_bare_table(lake: LakeTables) -> None:
    """A table of the log's columns and nothing else."""
    lake.spark.sql(create_table(DATABASE, _BARE_SCHEMA))


def append_bare(lake: LakeTables, rows: DataFrame) -> None:
    """Spark's own append to that table."""
    rows.writeTo(lake.qualified(_BARE_TABLE)).append()


def _apply(ours: Ours, rows: DataFrame) -> Mapping[str, Any]:
    """Figures of bringing the rows into the table from the log, which has them already."""
    moment = ours.append(rows)
    return _measure(lambda _: ours.apply_pending(moment), rows)


def _measure(append: Callable[[DataFrame], object], rows: DataFrame) -> Mapping[str, Any]:
    with metered() as meter:
        append(rows)
    return meter.figures()


def _fill(ours: Ours, row: DataFrame, files: int) -> None:
    filler = row.withColumn(naming.OFFSET, F.lit(FILLER_OFFSET).cast("bigint")).cache()
    ours.append(filler)
    append_bare(ours.lake, filler)
    for table in (ORDERS.changes, _BARE_TABLE):
        lengthen(ours.lake, table, files)
    ours.forget()


def _keep(lake: LakeTables, table: str, folder: str) -> None:
    rows = lake.read(table).where(f"{naming.OFFSET} <> {FILLER_OFFSET} AND {naming.OP} <> 'r'")
    rows.write.parquet(folder)
