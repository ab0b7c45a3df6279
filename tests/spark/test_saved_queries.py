"""The texts for Spark run, and answer what the texts for Athena do, translated for DuckDB."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.sql.functions import array, lit

from cdclake import naming
from cdclake.iceberg.as_of_query import AS_OF, as_of_query
from cdclake.iceberg.saved_queries import ATHENA, INCOMPLETE, SPARK, saved_queries
from tests.spark.events import Engine
from tests.unit.verify.lakes import create

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AN_HOUR_AGO = r"\(current_timestamp - interval '1' hour\)"
# What of each answer is compared: not what only tells when it was made.
SHOWN = {
    "live rows": "id, v, big, cdc_position",
    "number of live rows": "live",
    "deleted rows": "id, cdc_position",
    "live rows as they were an hour ago": "id, v, big",
    "audit trail of one key": "cdc_op, v, big, cdc_position",
    "changes of the last hour": "operation, id, v, cdc_position",
    "quarantined events": "reason, events",
    "the changelog, each event once": "cdc_op, id, v, cdc_position",
    INCOMPLETE: "id, waits_for",
    "files": "content, files, bytes, small",
    "snapshots": "snapshot_id, operation",
}


@pytest.fixture(scope="module")
def engine(spark: Any) -> Engine:
    """Two batches; then the log has all of the second once more, as Firehose would send it."""
    engine = Engine(spark)
    e = engine.event
    engine.run(e("c", 10, 10, v="1", big="A"), e("c", 11, 11, id=2, v="x"))
    engine.run(
        e("u", 30, 30, v="3", big=...), e("u", 20, 20, v="2", big="B"),
        e("d", 31, 31, id=2), e("c", 32, 32, id=3, v="y"), (b"{", b"no JSON"),
    )  # fmt: skip
    log = engine.lake.qualified(engine.table.changes)
    spark.sql(f"SELECT * FROM {log} WHERE {naming.LSN} >= 20").writeTo(log).append()
    return engine


def of_spark(engine: Engine, what: str, *values: Any, at_ms: int | None = None) -> list[Any]:
    text = saved_queries(engine.table, "cdc", SPARK)[what]
    if at_ms is not None:
        text, count = re.subn(AN_HOUR_AGO, f"timestamp_millis({at_ms})", text)
        assert count == 1
    selected = f"SELECT {SHOWN[what]} FROM ({text})"
    return [tuple(row) for row in engine.spark.sql(selected, args=list(values)).collect()]


def of_athena(engine: Engine, what: str, *values: Any) -> list[Any]:
    """Of the very rows that Spark has; DuckDB has no time to travel in."""
    text = re.sub(" FOR TIMESTAMP AS OF " + AN_HOUR_AGO, "", query_of(engine, what))
    with duckdb.connect() as session:
        of_log, of_state = (
            [row.asDict() for row in engine.lake.read(name).collect()]
            for name in (engine.table.changes, engine.table.name)
        )
        create(session, engine.table, map(in_micros, of_log), map(in_micros, of_state))
        session.register(naming.QUARANTINE, engine.lake.read(naming.QUARANTINE).toPandas())
        for of, columns in (
            ("files", "content INT, file_size_in_bytes BIGINT"),
            ("snapshots", "committed_at TIMESTAMP, snapshot_id BIGINT, operation TEXT"),
        ):
            names = ", ".join(part.split()[0] for part in columns.split(", "))
            table = f"{engine.lake.qualified(engine.table.name)}.{of}"
            rows = engine.spark.sql(f"SELECT {names} FROM {table}").collect()
            session.execute(f'CREATE TABLE "{engine.table.name}${of}" ({columns}, summary TEXT)')
            for row in rows:
                held = ", ".join("?" * len(row))
                into = f'"{engine.table.name}${of}" ({names})'
                session.execute(f"INSERT INTO {into} VALUES ({held})", list(row))
        translated = sqlglot.transpile(text, read="athena", write="duckdb")[0]
        return session.execute(f"SELECT {SHOWN[what]} FROM ({translated})", list(values)).fetchall()


def query_of(engine: Engine, what: str) -> str:
    return saved_queries(engine.table, "cdc", ATHENA)[what].replace('"cdc".', "")


def in_micros(row: dict[str, Any]) -> dict[str, Any]:
    moments = (naming.INGESTED_AT, naming.COMMITTED_AT)
    return {
        name: round(value.timestamp() * 1e6) if name in moments and value else value
        for name, value in row.items()
    }


ELSEWHERE = {"live rows as they were an hour ago", INCOMPLETE}


@pytest.mark.parametrize("what", sorted(SHOWN.keys() - ELSEWHERE))
def test_both_texts_answer_alike(engine: Engine, what: str) -> None:
    values = [1] if "?" in query_of(engine, what) else []
    ours = of_spark(engine, what, *values)
    assert ours, "a question that has no answer compares nothing"
    assert sorted(ours, key=repr) == sorted(of_athena(engine, what, *values), key=repr)


def test_a_row_that_waits_for_a_value_is_listed(spark: Any) -> None:
    engine = Engine(spark)
    engine.run(engine.event("c", 10, 10, v="x", big="A"))
    log = engine.lake.qualified(engine.table.changes)
    born = spark.table(log).withColumn("id", lit(2)).withColumn("big", lit(None).cast("string"))
    born.withColumn(naming.UNAVAILABLE, array(lit("big"))).writeTo(log).append()
    assert of_spark(engine, INCOMPLETE) == of_athena(engine, INCOMPLETE) == [(2, "big")]


def test_what_they_answer_is_right(engine: Engine) -> None:
    assert [row[:3] for row in sorted(of_spark(engine, "live rows"))] == [
        (1, "3", "B"), (3, "y", None),
    ]  # fmt: skip
    trail = [row[:3] for row in of_spark(engine, "audit trail of one key", 1)]
    assert trail == [("c", "1", "A"), *[("u", "2", "B")] * 2, *[("u", "3", None)] * 2]
    once = [row[:2] for row in of_spark(engine, "the changelog, each event once")]
    assert sorted(once) == [("c", 1), ("c", 2), ("c", 3), ("d", 2), ("u", 1), ("u", 1)]


@pytest.mark.slow  # by default DuckDB runs the catalogue's cases
def test_the_rows_of_a_commit_time_have_what_changed_keys_had(spark: Any) -> None:
    """Spark looks up the value that a changed key did not send; an older time is refused."""
    engine = Engine(spark)
    e, now = engine.event, datetime.now(UTC)
    read, sent, moved = (round((now - timedelta(hours=n)).timestamp() * 1e6) for n in (5, 4, 3))
    engine.run(e("r", None, 10, v="0", big="?", ts=read), e("r", None, 10, id=9, v="9", ts=read))
    engine.run(
        e("u", 20, 20, v="1", big="A", ts=sent),
        e("d", 30, 30, ts=moved), e("c", 30, 30, id=2, v="2", big=..., ts=moved),
    )  # fmt: skip
    text = as_of_query(engine.table, engine.plan, SPARK)[AS_OF]

    def asked(micros: int) -> list[Any]:
        moment = f"{EPOCH + timedelta(microseconds=micros):%Y-%m-%dT%H:%M:%S.%fZ}"
        return sorted(tuple(row) for row in spark.sql(text, args=[moment]).collect())

    other = (9, "9", None)
    assert asked(moved - 1) == [(1, "1", "A"), other]
    assert asked(moved) == [(2, "2", "A"), other]
    with pytest.raises(Py4JJavaError, match="ask for a commit time since"):
        asked(read - 1)


def test_every_query_is_compared(engine: Engine) -> None:
    assert SHOWN.keys() == saved_queries(engine.table, "cdc").keys()


def test_recent_changes_and_refused_events(engine: Engine) -> None:
    assert of_spark(engine, "number of live rows") == [(2,)]
    assert [row[0] for row in of_spark(engine, "deleted rows")] == [2]
    changes = [row[:2] for row in of_spark(engine, "changes of the last hour")]
    assert changes[:4] == [("insert", 1), ("insert", 2), ("update", 1), ("update", 1)]
    [[reason, events]] = of_spark(engine, "quarantined events")
    assert events == 1 and reason


def test_a_time_that_was(engine: Engine) -> None:
    table = engine.lake.load(engine.table.name)
    applied = [each.timestampMillis() for each in table.snapshots()]
    what = "live rows as they were an hour ago"
    then = of_spark(engine, what, at_ms=applied[0])
    assert sorted(then) == [(1, "1", "A"), (2, "x", None)]
    assert sorted(of_spark(engine, what, at_ms=applied[-1])) == [(1, "3", "B"), (3, "y", None)]
