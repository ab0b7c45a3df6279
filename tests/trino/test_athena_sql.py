"""Athena's SQL by a real Trino, over values: the views, the saved queries, the conversions.

One file, since every process of the tests would start another server.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest
from trino.exceptions import TrinoUserError

from cdclake import naming
from cdclake.config.derived_athena import athena_statements
from cdclake.debezium.refusals import broken_rule
from cdclake.firehose.redrive_stream import redrive_stream
from cdclake.firehose.stream import ARRIVED_AT, DeliveryStream
from cdclake.iceberg.athena_views import athena_views, tail_bound
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.saved_queries import (
    INCOMPLETE,
    put_queries,
    request_queries,
    saved_queries,
)
from cdclake.iceberg.views import AppliedThrough, history_view
from cdclake.local.trino.server import Trino
from cdclake.plan import Column, Plan, Table
from cdclake.web_logs.row import COLUMNS as WEB_LOG_COLUMNS
from tests.model.scenarios import Case
from tests.model.shapes import plan_with
from tests.trino.case_groups import (
    STRIDE,
    SharedLake,
    catalogue,
    groups,
    lacking,
    lake_of_cases,
    lake_of_catalogue,
)
from tests.trino.values import SNAPSHOTS, lake_values, over, relation, trino_type
from tests.unit.catalogue.test_current import as_sent
from tests.unit.config.test_derived_athena import TABLE as DERIVED
from tests.unit.iceberg.test_athena_views import LOG, MOMENTS, TABLE
from tests.unit.runbooks import blocks
from tests.unit.verify.cases import APPLIED_10, C10, stored
from tests.unit.verify.key_spellings import histories, spelled_table
from tests.unit.verify.lakes import create, event, make_plan, make_table
from tests.unit.verify.test_views import APPENDED_AGAIN

# Stamp, minutes since the commit, and whether it is an ancestor of the present one.
Commit = tuple[AppliedThrough | None, float, bool]
A_DAY = 24 * 60


def select(table: Table, plan: Plan, view: str = "current") -> str:
    """The SELECT of one of the views."""
    statement = athena_views(table, plan)[f"{table.name}_{view}"]
    return statement.partition(" AS\n")[2]


def shown(
    engine: Trino, table: Table, plan: Plan, log: Any, state: Any, commits: Sequence[Commit]
) -> list[tuple[Any, ...]]:
    """The rows of `<t>_current`."""
    now = datetime.now(UTC)
    listed = [
        (stamp, now - timedelta(minutes=age), is_ancestor) for stamp, age, is_ancestor in commits
    ]
    relations = lake_values(table, plan, log, state, listed)
    query = over(select(table, plan), relations, plan.lake_database)
    return engine.rows(query)


def assert_shows(engine: Trino, lake: SharedLake, plan: Plan) -> None:
    commits = [(lake.stamp, A_DAY, True)]
    found = shown(engine, lake.table, plan, lake.log, lake.state, commits)
    keys = len(lake.table.key)
    live = {row[:keys]: tuple(map(as_sent, row[keys:])) for row in found}
    assert len(live) == len(found)
    assert lake.completed(live) == lake.expected


@pytest.mark.parametrize("names", groups())
def test_current(engine: Trino, names: list[str]) -> None:
    lake = lake_of_cases(names)
    assert_shows(engine, lake, make_plan(lake.table))


@pytest.mark.parametrize("names", groups())
def test_rows_that_lack_values_are_listed(engine: Trino, names: list[str]) -> None:
    lake = lake_of_cases(names)
    query = saved_queries(lake.table, "lake_db").get(INCOMPLETE)
    if query is None:
        assert not lacking(names)
        return
    relations = lake_values(lake.table, make_plan(lake.table), lake.log, lake.state)
    found = {row[0] for row in engine.rows(over(query, relations, "lake_db"))}
    assert {names[key // STRIDE] for key in found} == lacking(names)


@pytest.mark.parametrize(("members", "step", "stamped"), catalogue())
def test_case(engine: Trino, members: list[Case], step: int, stamped: int) -> None:
    lake = lake_of_catalogue(members, step, stamped)
    assert_shows(engine, lake, plan_with(lake.table))


STALE = [event("u", 20, 21, ingested=5, id=1, v=2, big="B")]
OLDER, NEWER = AppliedThrough(4), AppliedThrough(6)


@pytest.mark.parametrize(
    ("commits", "v"),
    [
        pytest.param([(None, 9, True)], 2, id="no stamp: the whole changelog is the tail"),
        pytest.param([(OLDER, 9, True), (NEWER, 0, True)], 2, id="too young a stamp"),
        pytest.param([(OLDER, 9, True), (NEWER, 8, False)], 2, id="rolled back"),
        pytest.param([(OLDER, 9, True), (NEWER, 8, True), (None, 7, True)], 1, id="applied"),
    ],
)
def test_the_stamp_is_never_newer_than_the_state(
    engine: Trino, commits: list[Commit], v: int
) -> None:
    table = make_table()
    rows = shown(engine, table, make_plan(table), [C10, *STALE], [APPLIED_10], commits)
    assert [row[:2] for row in rows] == [(1, v)]


def test_a_key_of_two_texts_is_one_row(engine: Trino) -> None:
    for name, (facts, log, state, stamp, live) in histories("timestamptz(3)").items():
        table = spelled_table("timestamptz(3)", **facts)
        rows = shown(engine, table, make_plan(table), log, state, [(stamp, A_DAY, True)])
        assert [row[1] for row in rows] == [row[1] for row in live], name


# Floating-point keys of the state and of the changelog, each pair one key in PostgreSQL.
SAME_KEYS = [(float("nan"), float("nan")), (0.0, -0.0), (0.5, 0.5)]


@pytest.mark.parametrize("kind", ["real", "double precision"])
@pytest.mark.slow
def test_a_floating_point_key_is_one_row(engine: Trino, kind: str) -> None:
    id_, *values = make_table().columns
    table = make_table(columns=(replace(id_, type=kind), *values))
    plan = make_plan(table)
    applied = [{**APPLIED_10, "id": key} for key, _ in SAME_KEYS]
    other = {**APPLIED_10, "id": 2.5, "v": 7}
    for op, expected in (("u", [2, 2, 2, 7]), ("d", [7])):
        tail = [event(op, 20, 21, ingested=5, id=key, v=2, big="B") for _, key in SAME_KEYS]
        rows = shown(engine, table, plan, tail, [*applied, other], [(OLDER, 9, True)])
        assert sorted(row[1] for row in rows) == expected
    born = [event("c", 10, 11, id=key, v=1, big="?") for _, key in SAME_KEYS]
    query = saved_queries(table, "lake_db")[INCOMPLETE]
    for state, count in (([other], 3), ([*applied, other], 0)):
        relations = lake_values(table, plan, born, state)
        assert len(engine.rows(over(query, relations, "lake_db"))) == count


def test_a_view_with_a_bound_fails_if_the_state_was_set_back(engine: Trino) -> None:
    plan, stamp = make_plan(TABLE), AppliedThrough(1_764_000_000_123_457)

    def asked(query: str, applied: AppliedThrough, *log: Any) -> list[tuple[Any, ...]]:
        commits = [(applied, datetime.now(UTC) - timedelta(minutes=9), True)]
        lake = lake_values(TABLE, plan, log, [stored(10, 11, id=1, flag=False)], commits)
        return engine.rows(over(query, lake, plan.lake_database))

    [[since]] = asked(tail_bound(TABLE, plan), stamp)
    assert since == stamp.ingested
    view = athena_views(TABLE, plan, since)["t_current"].partition(" AS\n")[2]
    newer, older = recent("u", id=1, flag=True), event("u", 20, 21, ingested=since, id=1, flag=True)
    assert [row[:2] for row in asked(view, stamp, newer)] == [(1, True)]
    assert [row[:2] for row in asked(view, stamp, older)] == [(1, False)]
    for what, condition in (("count(*)", "true"), ("raw", "id = 5"), ("flag", "seen IS NULL")):
        query = f"SELECT {what} FROM ({view}) WHERE {condition}"
        with pytest.raises(TrinoUserError, match="then run `cdclake views`"):
            asked(query, replace(stamp, ingested=since - 1), older)


@pytest.mark.parametrize("retry_seconds", [0, 7200])
@pytest.mark.slow
def test_rows_that_firehose_commits_late_are_shown(engine: Trino, retry_seconds: int) -> None:
    """Those of the table's stream, and those of the redrive stream, which is slower than some."""
    table = make_table(delivery="firehose")
    stream = DeliveryStream(
        name="t", topic="p.public.t", tables=("t",), routed=False, buffer_seconds=0, buffer_mib=1,
        function_seconds=10, function_mib=1, function_retries=2, retry_seconds=retry_seconds,
        error_prefix="firehose", mib_per_second=1,
    )  # fmt: skip
    redrive = redrive_stream(make_plan(table, deliveries=(stream,)))
    assert redrive is not None
    late = max(stream.lateness_seconds, redrive.lateness_seconds)
    assert late > max(3 * 10 + retry_seconds, 60 + 4 * 10 + 300)
    stamp = AppliedThrough(10_000_000_000)
    for before, v in ((late - 1, 2), (late + 1, 1)):
        log = [{**STALE[0], naming.INGESTED_AT: stamp.ingested - before * 1_000_000}]
        plan = make_plan(table, deliveries=(stream,))
        rows = shown(engine, table, plan, log, [APPLIED_10], [(stamp, A_DAY, True)])
        assert [row[:2] for row in rows] == [(1, v)]


EDGES: list[dict[str, Any]] = [
    {"seen": "infinity", "raw": "%%%", "total": "12.340"},
    {"seen": "-0043-03-15T12:00:00Z", "day": -735_253, "at": -63_531_000_000_000_001, "raw": ""},
    {"seen": "+10000-01-01T00:00:00.000001Z", "day": 2_932_897, "at": 253_402_300_800_000_000},
    {"total": "-0.1", "exact": "NaN", "clock": 1},
]
HISTORY = [
    *LOG,
    *(event("u", 10 * n, 10 * n + 1, id=n, **values) for n, values in enumerate(EDGES, 10)),
]
YEAR = re.compile(r"([+-]?\d+)(-\d\d-\d\d)( \(BC\))?(?: (\d\d:\d\d:\d\d)(?:\.(\d+))?)?")


def test_history_has_the_local_views_values(engine: Trino) -> None:
    plan = make_plan(TABLE)
    columns = ", ".join(
        f'CAST("{c.name}" AS varchar) AS "{c.name}"' if c.name in ("day", "at", "seen")
        else f'"{c.name}"'
        for c in TABLE.columns
    )  # fmt: skip
    facts = f"cdc_op, cdc_position, CAST({naming.INGESTED_AT} AS varchar) AS ingested"
    query = over(select(TABLE, plan, "history"), lake_values(TABLE, plan, HISTORY), "lake_db")
    found = engine.rows(f"SELECT {columns}, {facts} FROM ({query}) ORDER BY cdc_position")
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        create(session, TABLE, HISTORY)
        view = history_view(TABLE, changes="t_changes", dialect=DUCKDB)
        utc = ", ".join(f"{name} AT TIME ZONE 'UTC' AS {name}" for name in MOMENTS)
        view = f"SELECT * REPLACE ({utc}) FROM ({view})"
        local = session.execute(f"SELECT {columns}, {facts} FROM ({view}) ORDER BY cdc_position")
        expected = local.fetchall()
    assert [list(map(of_era, row)) for row in found] == [list(map(of_era, row)) for row in expected]
    assert found[0][2] is not None and found[3][2] is None


def test_history_has_each_event_of_firehose_once(engine: Trino) -> None:
    table = make_table(delivery="firehose")
    lake = lake_values(table, make_plan(table), APPENDED_AGAIN)
    query = over(select(table, make_plan(table), "history"), lake, "lake_db")
    assert sorted(engine.rows(f"SELECT cdc_op, id, cdc_offset FROM ({query})")) == [
        ("c", 1, 90), ("c", 2, 11), ("d", 1, 21), ("t", None, 31)
    ]  # fmt: skip


def of_era(value: object) -> object:
    """A point in time with an astronomical year: DuckDB writes BC behind it."""
    parts = YEAR.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        return value
    year, day, is_bc, time, fraction = parts.groups()
    return (1 - int(year) if is_bc else int(year), day, time, (fraction or "").rstrip("0"))


def recent(op: str, **values: Any) -> dict[str, Any]:
    return event(op, 20, 21, ingested=time.time_ns() // 1000, **values)


QUESTIONS = {  # what is asked: columns, and the answer
    "live rows": ("id, v", [(2, 7)]),
    "number of live rows": ("live", [(1,)]),
    "deleted rows": ("id", [(1,)]),
    "live rows as they were an hour ago": ("id, v", [(2, 7)]),
    "audit trail of one key": ("cdc_op, v", [("c", 1), ("c", 1), ("u", 2)]),
    "changes of the last hour": ("operation, id, v", [("update", 1, 2)]),
    INCOMPLETE: ("id, waits_for", [(3, "big")]),
    "quarantined events": ("reason, events", [("BROKEN_RULE: r is broken by column 'id'", 2)]),
    "the changelog, each event once": (
        "cdc_lsn, cdc_op",
        [(11, "c"), (12, "c"), (21, "u"), (23, "c")],
    ),
    "files": ("content, files, bytes, small", [(0, 2, 200_000_005, 1), (1, 1, 7, 1)]),
    "snapshots": ("snapshot_id, operation", [(0, "overwrite")]),
}
ASKED = make_table()
SAVED = saved_queries(ASKED, "lake_db")
FILES = {"content": "integer", "file_size_in_bytes": "bigint"}
QUARANTINE = {"table": "varchar", "reason": "varchar", "topic": "varchar", "offset": "bigint",
              "quarantined_at": "timestamp(6) with time zone"}  # fmt: skip


def asked_lake() -> dict[str, str]:
    log = [C10, {**C10, naming.OFFSET: 90}, event("c", 10, 12, id=2, v=7), recent("u", id=1, v=2),
           event("c", 20, 23, id=3, v=5, big="?")]  # fmt: skip
    state = [
        {"id": 1, "v": 2, naming.DELETED: True, naming.POSITION: "b"},
        {"id": 2, "v": 7, naming.DELETED: False, naming.POSITION: "a"},
    ]
    sizes = ((0, 5), (0, 200_000_000), (1, 7))
    refused = {"table": "t", "topic": "s3://b/x"}
    reasons = [broken_rule("r", ASKED.columns[0], str(n)) for n in (1, 2)]
    commits = [(AppliedThrough(), datetime.now(UTC), True)]
    return {
        **lake_values(ASKED, make_plan(ASKED), log, state, commits),
        "t$files": relation(FILES, [dict(zip(FILES, size, strict=True)) for size in sizes]),
        naming.QUARANTINE: relation(
            QUARANTINE,
            [{**refused, "reason": each, "offset": n} for n, each in enumerate(reasons)],
        ),
    }


def without_time_travel(query: str) -> str:
    """The query without the clause that only a connector answers."""
    return re.sub(r" FOR TIMESTAMP AS OF (\(.*\)|TIMESTAMP '.*')", "", query)


@pytest.mark.parametrize("what", SAVED)
def test_saved_queries_answer(engine: Trino, what: str) -> None:
    columns, expected = QUESTIONS[what]
    query = over(without_time_travel(SAVED[what]), asked_lake(), "lake_db")
    values = [1] if "?" in SAVED[what] else []
    assert sorted(engine.rows(f"SELECT {columns} FROM ({query})", *values)) == expected


def test_queries_of_put_records_answer(engine: Trino) -> None:
    types = {"id": "bigint", ARRIVED_AT: "timestamp(6) with time zone"}
    records = [{"id": 1, ARRIVED_AT: n * 10} for n in (1, 2)]
    lake = {"p": relation(types, records), "p$files": relation(FILES, [])}
    lake["p$snapshots"] = relation(SNAPSHOTS, [])
    found = {
        what: len(engine.rows(over(query, lake, "lake_db")))
        for what, query in put_queries("p", ["id"], "lake_db").items()
    }
    assert found == {
        "newest rows": 2, "rows of each day of arrival": 1,
        "each key once, as it arrived last": 1, "files": 0, "snapshots": 0,
    }  # fmt: skip


def test_queries_of_web_logs_answer(engine: Trino) -> None:
    types = {name: trino_type(kind) for name, kind in WEB_LOG_COLUMNS}
    at = time.time_ns() // 1000
    paths = (("/a", 200), ("/a", 404), ("/b", 200), (None, 400))
    rows = [
        {"remote_addr": "10.0.0.1", "time_local": at, "request": path and f"GET {path} HTTP/1.1",
         "status": status, "body_bytes_sent": 5}
        for path, status in paths
    ]  # fmt: skip
    rows.append({**rows[0], "time_local": at - 2 * 86_400_000_000})
    lake = {"w": relation(types, rows), "w$files": relation(FILES, []),
            "w$snapshots": relation(SNAPSHOTS, [])}  # fmt: skip
    found = {
        what: [row[-2:] for row in engine.rows(over(query, lake, "lake_db"))]
        for what, query in request_queries("w", "lake_db").items()
    }
    assert sorted(found["requests of each hour and status"]) == [(1, 5), (1, 5), (2, 10)]
    assert sorted(found["most requested paths"]) == [(1, 0), (1, 1), (2, 1)]
    assert sorted(found["clients with the most errors"]) == [(400, 1), (404, 1)]
    assert len(found["newest rows"]) == len(rows)


REFS = {"name": "varchar", "snapshot_id": "bigint"}


def test_queries_of_runbooks_answer(engine: Trino) -> None:
    lake = {
        **asked_lake(),
        "orders": relation({"order_id": "bigint"}, [{"order_id": 1}]),
        "orders$refs": relation(REFS, [{"name": "at-2026-01-01T09:00:00Z", "snapshot_id": 5}]),
    }
    queries = blocks("athena")
    assert queries
    for page, query in queries:
        text = without_time_travel(query).replace("cdc_iceberg.", "").replace('"cdc_iceberg".', "")
        assert engine.rows(over(text, lake, "cdc_iceberg")), page


def test_a_derived_tables_query_answers(engine: Trino) -> None:
    query = athena_statements(DERIVED, "cdc_iceberg").create_table_as.partition("\nAS ")[2]
    lake = {
        "city_current": "SELECT 1 AS city_id, 'a' AS city, 7 AS country_id",
        "country_current": "SELECT 7 AS country_id, 'P' AS country",
    }
    assert engine.rows(over(query, lake, "cdc_iceberg")) == [(1, "P", "A")]


KINDS = ("text", "integer", "numeric(12,2)", "timestamptz", "timestamp", "jsonb", "date", "bytea")
MAX_STAGES = 150  # query.max-stage-count's default; Athena publishes none
MAX_BYTES = 262_144  # Athena's limit of a statement


@pytest.mark.slow
def test_a_table_of_400_columns_and_two_keys_is_within_the_limits(engine: Trino) -> None:
    names = [("a", "integer"), ("b", "text")]
    names += [(f"column_number_{n}", KINDS[n % len(KINDS)]) for n in range(398)]
    columns = tuple(Column(source=name, name=name, type=kind) for name, kind in names)
    table = make_table(columns=columns, key=("a", "b"))
    plan = make_plan(table)
    assert len(athena_views(table, plan)["t_current"]) < MAX_BYTES
    log = [event("c", 10, 11, a=1, b="x", column_number_0="t")]
    query = over(select(table, plan), lake_values(table, plan, log), "lake_db")
    [[explained]] = engine.rows(f"EXPLAIN (TYPE DISTRIBUTED) {query}")
    assert explained.count("Fragment ") < MAX_STAGES
    assert [row[:3] for row in engine.rows(query)] == [(1, "x", "t")]
