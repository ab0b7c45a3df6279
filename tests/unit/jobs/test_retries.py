"""Retries with growing pauses: of a stream's table, its query, a job's tables."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from cdclake.control_objects import ResumeRequest
from cdclake.errors import RulesFailed, TableError
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_life import Held
from cdclake.jobs.control.table_progress import MAX_RETRY_S, TableProgress
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.stream import gauges, restarts
from cdclake.jobs.stream.restarts import Restarts
from cdclake.jobs.table_jobs import table_job, table_reports
from cdclake.jobs.table_jobs.table_job import report_tables
from cdclake.jobs.table_jobs.table_reports import AdvanceNote, Size, TableReport, report_table
from cdclake.naming import advance_name
from tests.spark.events import MemoryStore

_NUMBERS = ("rows_applied", "files_before", "files_after", "bytes_before", "bytes_after")
REPORT = TableReport(
    table="t",
    seconds=1.0,
    **dict.fromkeys((*_NUMBERS, "snapshots_before", "snapshots_after"), 0),  # type: ignore[arg-type]
)
SLOW_DOWN = ClientError(
    {"Error": {"Code": "SlowDown", "Message": "reduce your request rate"}}, "PutObject"
)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the modules' clock, not `time.sleep`: a thread left by another test sleeps, too."""
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=time.monotonic)
    for module in (restarts, table_job):
        monkeypatch.setattr(module, "time", clock)
    return slept


def test_a_held_table_is_due_after_pauses_that_grow_and_end():
    place, now = TableProgress(offsets={0: 7}), 1_000_000.0
    waited = []
    for _ in range(12):
        place.hold("S3 does not answer", now)
        assert (place.is_streaming, place.needs_operator) == (False, False)
        assert isinstance(place.life, Held)
        retry_at = place.life.retry_at
        assert not place.is_due(retry_at - 1) and place.is_due(retry_at)
        waited.append(retry_at - now)
    assert waited[0] <= 10 and waited[1] > waited[0] and waited[-1] >= 0.75 * MAX_RETRY_S
    assert max(waited) <= MAX_RETRY_S and place.failures == 12
    assert "Failed 12 times in a row; the next try is at 1970-01-12" in (place.last_error or "")
    place.flow()
    assert (place.is_streaming, place.last_error, place.offsets) == (True, None, {0: 7})


def test_failures_outlive_a_retry_until_an_operator_looks_at_the_table():
    place = TableProgress()
    for _ in range(3):
        place.hold("S3 does not answer", 10.0)
        place.flow()
        place = Progress.parse(Progress(tables={"t": place}).to_stored()).table("t")
    assert place.failures == 3
    place.hold("S3 does not answer", 10.0)
    place.ask_to_resume(ResumeRequest())
    place.hold("S3 does not answer", 10.0)
    assert place.failures == 1
    place.stop("a column is gone")
    assert place.failures == 0


def test_a_warning_outlives_that_the_table_is_held_back():
    place = TableProgress(warning="3 rows may be old", missed_below="p")
    place.hold("S3 does not answer", 10.0)
    assert "S3 does not answer" in (place.last_error or "")
    place = Progress.parse(Progress(tables={"t": place}).to_stored()).table("t")
    place.flow()
    assert place.last_error == "3 rows may be old"


def test_a_warning_that_an_earlier_version_stored_is_read():
    stored = TableProgress(warning="3 rows may be old").to_stored()
    del stored["warning"]
    assert TableProgress.parse(stored).last_error == "3 rows may be old"


def test_a_held_table_keeps_what_an_operator_asked_for_and_is_stored():
    place = TableProgress(quarantined=3)
    place.stop("expired")
    place.ask_to_resume(ResumeRequest(skip_gap=True))
    place.hold("S3 does not answer", 10.0)
    assert place.skips_gap and not place.is_due(10.0)
    stored = Progress(tables={"t": place}).to_stored()
    assert Progress.parse(stored).table("t") == place
    place.quarantined = 3  # since the request
    place.flow()
    assert place.quarantined == 3


def test_a_table_stopped_for_good_is_not_due():
    place = TableProgress()
    place.hold("S3 does not answer", 10.0)
    place.stop("a column is gone")
    assert place.needs_operator and not place.is_due(1e12)


def test_a_table_that_fails_for_minutes_is_reported_as_stopped():
    place, stream = TableProgress(), gauges.StreamGauges(Mock(), Metrics(None))
    shown = []
    for _ in range(gauges.FAILURES_TO_REPORT):
        place.hold("S3 does not answer", 10.0)
        shown.append(stream._is_stopped(place))
    assert shown == [False] * (gauges.FAILURES_TO_REPORT - 1) + [True]
    place.stop("a column is gone")
    assert stream._is_stopped(place)


def test_a_query_starts_again_after_a_failure_that_passes(pauses: list[float]):
    begun = Restarts()
    failing = [SLOW_DOWN] * 70

    def batch(*_: Any) -> None:
        if failing:
            raise failing.pop()

    def start() -> None:
        try:
            begun.observed(batch)(None, 1)  # type: ignore[arg-type]
        except ClientError as error:
            raise RuntimeError("the query failed, with a text only") from error

    begun.run(start)
    assert len(pauses) == 70 and sum(pauses) > 3_000  # about an hour
    assert pauses[0] < pauses[3] <= restarts.MAX_PAUSE_S >= max(pauses)


def test_a_query_that_fails_otherwise_fails_its_process(pauses: list[float]):
    with pytest.raises(RuntimeError, match="a mistake"):
        Restarts().run(lambda: (_ for _ in ()).throw(RuntimeError("a mistake")))
    assert not pauses


def test_a_job_retries_the_tables_of_a_failing_service_after_the_others(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(table_reports, "size_of", lambda *_: table_reports.Size(1, 1, 1))
    tables: list[Any] = [SimpleNamespace(name=name, stored=()) for name in ("one", "two", "three")]
    done: list[str] = []

    def work(_: Any, table: Any) -> int:
        done.append(table.name)
        if table.name == "one" and done.count("one") < 3:
            raise SLOW_DOWN
        if table.name == "two":
            raise TableError("two", "not maintained here")
        return 5

    job: Any = SimpleNamespace(lake=None, arguments={"run": "r"}, control=MemoryStore())
    one, two, three = report_tables(job, tables, work)
    assert done == ["one", "two", "three", "one", "one"]
    assert (one.error, one.rows_applied, three.rows_applied) == (None, 5, 5)
    assert two.error == "table 'two': not maintained here" and len(pauses) == 2
    advance = job.control.read(advance_name("r")).content
    assert (advance["done"], advance["total"], advance["rows"]) == (3, 3, 10)


def test_note_of_the_progress_fails_no_job() -> None:
    def refused(name: str, content: Any) -> None:
        raise SLOW_DOWN

    store: Any = SimpleNamespace(write=refused)
    AdvanceNote(store, "r", 1).add(REPORT)
    store.write = lambda name, content: 1 // 0
    with pytest.raises(ZeroDivisionError):
        AdvanceNote(store, "r", 1).add(REPORT)
    AdvanceNote(store, None, 1).add(REPORT)


def test_a_job_reports_a_table_whose_service_never_answers(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(table_job, "RETRY_FOR_S", -1.0)
    monkeypatch.setattr(table_reports, "size_of", lambda *_: (_ for _ in ()).throw(SLOW_DOWN))
    table: Any = SimpleNamespace(name="one", stored=())
    job: Any = SimpleNamespace(lake=None, arguments={}, control=None)
    [report] = report_tables(job, [table], lambda *_: 1)
    assert report.will_pass and "does not answer" in (report.error or "") and not pauses


def sizes_read(monkeypatch: pytest.MonkeyPatch, *answers: Size | Exception) -> None:
    """Have each reading of a table's size answer with the next of these."""
    left = list(answers)

    def size_of(*_: Any) -> Size:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(table_reports, "size_of", size_of)


FULL, LESS = Size(12, 34_600, 5), Size(7, 30_000, 6)


@pytest.mark.parametrize(
    ("read", "before", "after"),
    [
        ((FULL, FULL), FULL, FULL),
        ((FULL, LESS), FULL, LESS),  # a part was committed
        ((FULL, SLOW_DOWN), FULL, FULL),
        ((SLOW_DOWN, LESS), LESS, LESS),  # the work did not begin
    ],
)
@pytest.mark.parametrize("failure", [TableError("t", "not maintained here"), RulesFailed("t", ())])
def test_a_failed_table_keeps_its_size(
    failure: Exception, read: Any, before: Size, after: Size, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> int:
        raise failure

    sizes_read(monkeypatch, *read)
    table: Any = SimpleNamespace(name="t", stored=())
    report = report_table(None, table, work)  # type: ignore[arg-type]
    assert report.error is not None
    assert Size(report.files_before, report.bytes_before, report.snapshots_before) == before
    assert Size(report.files_after, report.bytes_after, report.snapshots_after) == after
