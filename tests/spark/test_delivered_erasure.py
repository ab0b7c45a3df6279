"""Rows that Firehose delivers are erased by the job that applies them, also if they arrive late."""

from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.control_objects import FORGET, ForgetRequest, erasures_name, outcome_name, request_name
from cdclake.debezium.position import epoch_start, history_part
from cdclake.derived_table import DerivedTable
from cdclake.erasures import Erasures, KeyHash
from cdclake.errors import InputError
from cdclake.jobs.apply import prepared_changes
from cdclake.jobs.apply.firehose_changelog import delivered_floor
from cdclake.jobs.derived import file_copy, own_table
from cdclake.jobs.derived.refresh import refresh
from cdclake.jobs.operations import delivered_changes, erasure
from cdclake.jobs.operations.delivered_changes import apply_delivered, rebuild_delivered
from cdclake.jobs.table_jobs.table_job import TableJob
from tests.recorded.firehose import made_rows
from tests.recorded.recording import EPOCH, Recording
from tests.spark.events import FreeLeases, MemoryStore
from tests.spark.firehose_log import FirehoseLog, under_a_new_name

pytestmark = pytest.mark.spark

RECORDED = Recording.load("changes")


class Lake:
    """A delivered table, its job, and the rows that Firehose's function makes of its events."""

    def __init__(self, spark: SparkSession) -> None:
        self.log = FirehoseLog(spark, under_a_new_name(RECORDED, "plain"))
        self.control, self.table = MemoryStore(), self.log.table
        [self.key] = self.table.key
        records = RECORDED.of_topic(self.table.topic)
        self.rows = [*made_rows(records, self.table, self.log.plan).values()]
        self.hashed = KeyHash.of(self.table.name, "salt")
        store: Any = self.control
        self.job = TableJob(self.log.plan, self.log.engine.lake, FreeLeases(), store, named=True)

    def of(self, number: int) -> list[Any]:
        return [row for row in self.rows if row[self.key] == number]

    def register(self, number: int) -> str:
        """Register the key as erased after all of its events."""
        digest = self.hashed.digest([number])
        last = max(row[naming.POSITION] for row in self.of(number))
        erasures = Erasures(self.hashed.fingerprint).added([digest], f"{last}~")
        self.control.write(erasures_name(self.table.name), erasures.to_json())
        return digest

    def ask(self, request: ForgetRequest) -> None:
        self.control.write(request_name(self.table.name, FORGET), request.to_json())

    def apply(self) -> int:
        return apply_delivered(self.job, self.table)

    def rebuild(self) -> int:
        return rebuild_delivered(self.job, self.table)

    def numbers(self, name: str) -> set[int]:
        rows = self.job.lake.read(name).select(self.key).distinct().collect()
        return {row[0] for row in rows}


@pytest.fixture
def lake(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(erasure, "CLOCK_MARGIN_S", 0.0)
    monkeypatch.setattr(delivered_changes, "secret_value", lambda *_: "salt")
    made = Lake(spark)
    made.job = replace(made.job, arguments={"mask_salt": "shop/mask"})
    return made


def test_rows_that_a_request_names_are_erased_and_late_ones_by_the_next_run(lake: Lake) -> None:
    chosen = lake.rows[0][lake.key]
    others = {row[lake.key] for row in lake.rows} - {chosen}
    late = lake.of(chosen)[:1]
    lake.log.commit(lake.rows)
    lake.apply()
    digest = lake.register(chosen)
    lake.ask(ForgetRequest("r", (digest,)))
    lake.apply()
    stored = lake.control.read(outcome_name(lake.table.name, FORGET))
    assert stored is not None and stored.content["id"] == "r"
    assert stored.content["events"] == len(lake.of(chosen))
    assert lake.numbers(lake.table.changes) == others
    state = lake.numbers(lake.table.name)
    assert chosen not in state

    lake.log.commit(late)
    assert lake.numbers(lake.table.changes) == {*others, chosen}
    lake.apply()
    assert lake.numbers(lake.table.changes) == others
    assert lake.numbers(lake.table.name) == state
    assert snapshots(lake) == 1


class Catalog:
    """Catalog entry of a derived table in files, in memory."""

    folder: str | None = None

    def publish(self, _table: Any, folder: str, *_: Any) -> str | None:
        before, self.folder = self.folder, folder
        return before

    def check(self, _table: Any) -> None:
        """No other table has the name."""


@pytest.mark.parametrize("form", ["iceberg", pytest.param("parquet", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_late_event_leaves_no_file_of_a_derived_table(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, form: Any
) -> None:
    """A refresh between Firehose's commit and the job's run has stored its row."""
    catalog = Catalog()
    for module in (file_copy, own_table):
        monkeypatch.setattr(module, "ExternalTable", lambda *_: catalog)
    table, newest = lake.table, max(lake.rows, key=lambda row: row[naming.POSITION])
    derived = DerivedTable(
        name=f"derived_{table.name}",
        sql=f"SELECT {lake.key} AS n FROM {table.name}_current",
        key=("n",),
        schedule="rate(1 hour)",
        sources=(table.name,),
        format=form,
    )
    lake.job = replace(lake.job, plan=replace(lake.log.plan, derived=(derived,)))
    lake.log.commit([row for row in lake.rows if row[lake.key] != newest[lake.key]])
    lake.apply()
    lake.register(newest[lake.key])
    lake.log.commit([newest])
    refresh(lake.job, derived)
    home = Path(lake.log.spark.conf.get("spark.sql.catalog.lake.warehouse") or "")
    assert newest[lake.key] in stored_numbers(home, derived.name)
    lake.apply()
    assert newest[lake.key] not in stored_numbers(home, derived.name)


def stored_numbers(home: Path, derived: str) -> set[int]:
    """The numbers in all files of the derived table, whether or not a table names them."""
    files = home.glob(f"*/{derived}/**/*.parquet")
    found = [pq.read_table(path, partitioning=None) for path in files]
    return {number for rows in found for number in rows.column("n").to_pylist()}


@pytest.mark.slow
def test_an_event_that_arrives_while_the_job_begins_is_not_applied(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the state's stamp would pass it, and no later run would look at it."""
    newest = max(lake.rows, key=lambda row: row[naming.POSITION])  # above the truncates
    chosen = newest[lake.key]
    others = {row[lake.key] for row in lake.rows} - {chosen}
    lake.log.commit([row for row in lake.rows if row[lake.key] != chosen])
    lake.apply()
    lake.register(chosen)

    def commit_late(*place: Any) -> str:
        lake.log.commit([newest])
        return delivered_floor(*place)

    with monkeypatch.context() as patched:
        patched.setattr(delivered_changes, "delivered_floor", commit_late)
        lake.apply()
    assert chosen not in lake.numbers(lake.table.name)
    assert lake.numbers(lake.table.changes) == others


@pytest.mark.slow
def test_a_rebuild_erases_events_that_no_run_has_applied(lake: Lake) -> None:
    chosen = max(lake.rows, key=lambda row: row[naming.POSITION])[lake.key]  # above the truncates
    others = {row[lake.key] for row in lake.rows} - {chosen}
    lake.log.commit(lake.rows)
    lake.apply()
    assert chosen in lake.numbers(lake.table.name)
    lake.register(chosen)
    assert lake.rebuild() == lake.job.lake.read(lake.table.name).count()
    assert chosen not in lake.numbers(lake.table.name)
    assert lake.numbers(lake.table.changes) == others


@pytest.mark.slow
@pytest.mark.parametrize("finish", ["apply", "rebuild"])
def test_an_erasure_of_late_events_that_fails_is_done_by_a_later_run(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, finish: str
) -> None:
    """Its events have left the changelog by then; its older snapshots still have them."""
    newest = max(lake.rows, key=lambda row: row[naming.POSITION])
    lake.log.commit([row for row in lake.rows if row[lake.key] != newest[lake.key]])
    lake.apply()
    lake.register(newest[lake.key])
    lake.log.commit([newest])
    for name in ("rewrite_without_deleted", "keep_current_snapshot"):
        with monkeypatch.context() as patched:
            patched.setattr(erasure, name, lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                lake.apply()
        assert newest[lake.key] not in lake.numbers(lake.table.changes)
        assert snapshots(lake) > 1
    getattr(lake, finish)()
    assert snapshots(lake) == 1
    lake.log.commit([row for row in lake.rows if row[lake.key] != newest[lake.key]])
    lake.apply()
    assert snapshots(lake) == 2


def snapshots(lake: Lake) -> int:
    return len(list(lake.job.lake.load(lake.table.changes).snapshots()))


@pytest.mark.slow
def test_a_rebuild_after_a_sweep_does_not_read_an_event_that_has_come_meanwhile(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = max(lake.rows, key=lambda row: row[naming.POSITION])
    chosen = newest[lake.key]
    others = [row for row in lake.rows if row[lake.key] not in (chosen, None)]  # no truncates
    lake.log.commit(others)
    lake.register(chosen)
    arriving = [newest]

    def commit_late(*_: Any) -> bool:
        lake.log.commit([arriving.pop()]) if arriving else None
        return True

    floor = history_part(str(epoch_start(EPOCH)))
    with monkeypatch.context() as patched:
        patched.setattr(prepared_changes, "_has_replaced_values", commit_late)
        patched.setattr(delivered_changes, "delivered_floor", lambda *_: floor)
        lake.apply()
    assert not arriving
    assert chosen not in lake.numbers(lake.table.name)
    assert lake.numbers(lake.table.changes) == {row[lake.key] for row in others}


def test_a_request_waits_for_the_register_and_for_the_delivery(lake: Lake) -> None:
    """Its command may end meanwhile: the deletes of its keys are refused from then on."""
    newest = max(lake.rows, key=lambda row: row[naming.POSITION])  # above the truncates
    request = ForgetRequest(
        "r", (lake.hashed.digest([newest[lake.key]]),), f"{newest[naming.POSITION]}~"
    )
    lake.ask(replace(request, hashes=("unknown",)))
    lake.log.commit(lake.rows)
    lake.apply()
    lake.register(newest[lake.key])
    for waiting in (replace(request, position="~"), replace(request, not_before=time() + 600)):
        lake.ask(waiting)
        lake.apply()
        assert lake.control.read(outcome_name(lake.table.name, FORGET)) is None
        assert newest[lake.key] in lake.numbers(lake.table.name)
    lake.ask(replace(request, not_before=time()))
    lake.apply()
    assert lake.control.read(request_name(lake.table.name, FORGET)) is None
    for name in lake.table.stored:
        assert newest[lake.key] not in lake.numbers(name)


def test_another_salt_stops_the_table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.log.commit(lake.rows)
    lake.register(lake.rows[0][lake.key])
    monkeypatch.setattr(delivered_changes, "secret_value", lambda *_: "other")
    with pytest.raises(InputError, match="another salt"):
        lake.apply()
