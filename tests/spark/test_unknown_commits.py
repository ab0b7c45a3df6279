"""Commits whose answer is lost, through Iceberg's own Glue catalog: nothing doubled or missed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.iceberg import commit_retry
from cdclake.jobs.iceberg.error_policy import Kind, cause_of
from cdclake.local.aws.aws_server import DurableAws
from cdclake.local.aws.http_server import Answer
from tests.spark.events import Engine
from tests.spark.glue_catalog import glue_session, serving

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class LossyAws:
    """S3 and Glue whose answers about one table are lost from its next commit on, for a while."""

    def __init__(self, folder: Path) -> None:
        self._aws = DurableAws(folder)
        self._table = b""
        self._left = 0
        self.committed = 0  # updates that were done, and of which nobody was told

    def lose(self, table: str, answers: int) -> None:
        """Of the next commit to this table, and of so many answers about it in all."""
        self._table, self._left, self.committed = f'"{table}"'.encode(), answers, 0

    def find(self) -> None:
        """Answers arrive again."""
        self._left = 0

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        answer = self._aws(environ, body)
        action = str(environ.get("HTTP_X_AMZ_TARGET", "")).rpartition(".")[2]
        if not self._left or self._table not in body:
            return answer
        if action == "UpdateTable" and answer[0] == 200:
            self.committed += 1
        if not self.committed:
            return answer
        self._left -= 1
        return 500, {}, b""


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LossyAws, str]]:
    lossy = LossyAws(tmp_path_factory.mktemp("aws"))
    with serving(lossy) as url:
        yield lossy, url


@pytest.fixture
def engine(spark: SparkSession, aws: tuple[LossyAws, str]) -> Engine:
    """An engine on a Glue catalog, in a session of its own beside the others' catalog."""
    session = glue_session(spark, aws[1])
    made = Engine(session)
    for table in (made.table.name, made.table.changes):
        session.sql(
            f"ALTER TABLE lake.cdc.{table} SET TBLPROPERTIES ("
            "'commit.status-check.min-wait-ms' = '10', 'commit.status-check.max-wait-ms' = '10')"
        )
    return made


@pytest.fixture
def lossy(aws: tuple[LossyAws, str]) -> Iterator[LossyAws]:
    yield aws[0]
    aws[0].find()


def lsns(engine: Engine) -> list[int]:
    return [row["cdc_lsn"] for row in engine.log()]


def test_one_lost_answer_is_no_trouble(engine: Engine, lossy: LossyAws) -> None:
    """The client asks again, is told of a conflict, and Iceberg finds its own commit."""
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    lossy.lose(engine.table.changes, answers=1)
    engine.run(e("u", 20, 20, v="b"))
    assert lossy.committed == 1
    assert (lsns(engine), engine.state()) == ([10, 20], {1: ("b", None)})


def test_a_log_commit_of_unknown_end_is_found_by_the_batch_that_runs_again(
    engine: Engine, lossy: LossyAws
) -> None:
    """F15."""
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    batch = [e("u", 20, 20, v="b"), e("c", 20, 21, id=2, v="c")]
    lossy.lose(engine.table.changes, answers=1000)
    with pytest.raises(Py4JJavaError) as failed:
        engine.run(*batch, offset=1)
    assert cause_of(failed.value, Kind.COMMIT_UNKNOWN) is not None
    assert lossy.committed == 1
    lossy.find()
    assert engine.state() == {1: ("a", None)}
    engine.run(*batch, offset=1)
    assert lsns(engine) == [10, 20, 21]
    assert engine.state() == {1: ("b", None), 2: ("c", None)}


def test_a_merge_of_unknown_end_is_looked_for_and_not_done_again(
    engine: Engine, lossy: LossyAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    tries: list[int] = []

    def pause(tried: int) -> None:
        tries.append(tried)
        lossy.find()

    monkeypatch.setattr(commit_retry, "pause", pause)
    lossy.lose(engine.table.name, answers=1000)
    engine.run(e("u", 20, 20, v="b"), e("d", 20, 21, id=2))
    assert engine.is_applied
    assert (tries, lossy.committed) == ([1], 1)
    assert engine.state() == {1: ("b", None)}
    snapshots = engine.spark.sql(f"SELECT * FROM lake.cdc.{engine.table.name}.snapshots")
    assert snapshots.count() == 2  # the first event's and the merge's
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == {1: ("b", None)}
