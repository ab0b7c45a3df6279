"""What the reader makes of metadata, moments, queries and values."""

import contextlib
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pytest

from cdclake import naming
from cdclake.errors import InputError
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp_json
from cdclake.jobs.reader import relations
from cdclake.jobs.reader.as_of import define_as_of
from cdclake.jobs.reader.catalog import CatalogTable, parse_table
from cdclake.jobs.reader.duck import Reader, extension_file
from cdclake.jobs.reader.mentioned_tables import mentioned, mentioned_removed
from cdclake.jobs.reader.point_in_time import NOW, at_snapshot, at_time, snapshot_id
from cdclake.jobs.reader.relations import TOO_EARLY
from cdclake.local.reader.query import _run, _too_early, json_value
from cdclake.local.reader.suggestions import remedy
from tests.unit.verify.lakes import make_plan, make_table

STAMP = {naming.STAMP_PROPERTY: '{"floor": "", "ingested": 7}'}


def metadata(*commits: tuple[int, int | None, int, dict[str, str]]) -> dict[str, Any]:
    """A table's metadata; commits are (id, parent, ms, summary)."""
    snapshots = [
        {"snapshot-id": i, "timestamp-ms": ms, "summary": summary}
        | ({} if parent is None else {"parent-snapshot-id": parent})
        for i, parent, ms, summary in commits
    ]
    return {
        "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long"}]}],
        "current-schema-id": 0,
        "current-snapshot-id": commits[-1][0] if commits else -1,
        "snapshots": snapshots,
        "snapshot-log": [{"timestamp-ms": ms, "snapshot-id": i} for i, _, ms, _ in commits],
    }


THREE = parse_table(
    "t", "s3://b/t/m.json",
    metadata((1, None, 1000, {}), (2, 1, 2000, STAMP), (3, 2, 3000, {"total-records": "5"})),
)  # fmt: skip


def test_the_newest_stamp_is_found_beneath_unstamped_commits():
    assert THREE.current is not None and THREE.current.rows == 5
    stamped = THREE.stamped(THREE.current)
    assert stamped is not None and stamped.id == 2
    assert THREE.stamped(THREE.snapshots[1]) is None


@pytest.mark.parametrize(("ms", "found"), [(999, None), (1000, 1), (2999, 2), (9999, 3)])
def test_the_snapshot_of_a_time(ms, found):
    snapshot = THREE.at_time(ms)
    assert (snapshot.id if snapshot else None) == found


def test_an_expired_time_is_refused():
    expired = parse_table("t", "s3://b/t/m.json", metadata((3, 2, 3000, {})))
    with pytest.raises(InputError, match="expired"):
        expired.at_time(2500)


HOUR = 3_600_000


def thinned() -> CatalogTable:
    """Of four commits, in four of five hours, the first two by tags alone."""
    kept = metadata(
        *((n, n - 1 or None, n * HOUR - 7, {}) for n in (1, 3)),
        *((n, n - 1, n * HOUR - 7, {}) for n in (4, 5)),
    )
    kept["snapshot-log"] = kept["snapshot-log"][2:]
    kept["refs"] = {"main": {"snapshot-id": 5, "type": "branch"}} | {
        tag: {"snapshot-id": n, "type": "tag"}
        for tag, n in (
            ("at-1970-01-01T01:00:00Z", 1),
            ("at-1970-01-01T03:00:00Z", 3),
            ("at-the-launch", 4),  # somebody's own
        )
    }
    return parse_table("t", "s3://b/t/m.json", kept)


@pytest.mark.parametrize(
    ("ms", "found"),
    [(HOUR, 1), (2 * HOUR, 1), (3 * HOUR, 3), (4 * HOUR - 7, 4), (4 * HOUR + 1, 4), (5 * HOUR, 5)],
)  # fmt: skip
def test_of_thinned_snapshots_whole_hours_are_kept(ms, found):
    """The second hour had no commit."""
    snapshot = thinned().at_time(ms)
    assert snapshot is not None and snapshot.id == found
    assert thinned().tags["at-the-launch"] == 4 and "main" not in thinned().tags


@pytest.mark.parametrize(
    ("summary", "rows"),
    [
        ({"total-records": "5", "total-position-deletes": "2"}, 3),
        ({"total-records": "5", "total-equality-deletes": "1"}, None),
        ({}, None),
    ],
)
def test_live_rows_are_known_unless_deletes_hide_their_number(summary, rows):
    table = parse_table("t", "s3://b/t/m.json", metadata((1, None, 1000, summary)))
    assert table.current is not None and table.current.live_rows == rows


@pytest.mark.parametrize("ms", [HOUR - 1, HOUR + 1, 3 * HOUR - 7, 3 * HOUR + 1])
def test_a_moment_between_kept_hours_is_refused(ms):
    with pytest.raises(InputError) as refused:
        thinned().at_time(ms)
    assert "ask for 1970-01-01T03:59:59.993000+00:00 or later" in refused.value.remedy
    assert "or for a whole hour from 1970-01-01T01:00:00+00:00 on" in refused.value.remedy


def test_an_empty_table_is_typed():
    empty = parse_table("t", "s3://b/t/m.json", metadata())
    assert duckdb.sql(relations.scan(empty, NOW)).fetchall() == []
    assert "snapshot_from_id = 2::UBIGINT)" in relations.scan(THREE, at_snapshot(2, [THREE]))


def test_a_column_of_then_does_not_pass_for_one_that_has_its_name_today():
    raw = metadata((1, None, 1000, {}), (2, 1, 2000, {}))
    then = [{"id": 1, "name": "id", "type": "long"}, {"id": 2, "name": "y", "type": "int"}]
    today = [then[0], {"id": 2, "name": "cdc_dropped_y"}, {"id": 3, "name": "y"}]
    raw["schemas"] = [
        {"schema-id": 0, "fields": then},
        {"schema-id": 1, "fields": [{"type": "string", **field} for field in today]},
    ]
    raw["snapshots"][0]["schema-id"], raw["current-schema-id"] = 0, 1
    table = parse_table("t", "s3://b/t/m.json", raw)
    scan = relations.scan(table, at_snapshot(1, [table]))
    assert scan.startswith('SELECT "id" AS "id", "y" AS "cdc_dropped_y" FROM iceberg_scan(')
    assert 'AS "y" WHERE false' in scan


def test_moments():
    assert snapshot_id(" 123 ") == 123
    assert snapshot_id("2024-01-01") is None
    noon = int(datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp() * 1000)
    assert at_time("2024-01-01T12:00").milliseconds == noon
    assert at_time("2024-01-01T14:00:00+02:00").milliseconds == noon
    with pytest.raises(InputError, match="neither a time"):
        at_time("yesterday")
    with pytest.raises(InputError, match="in the future"):
        at_time("2999-01-01")
    with pytest.raises(InputError, match="no table"):
        at_snapshot(99, [THREE])


def test_only_tables_that_a_query_names_are_opened():
    plan = make_plan(make_table(name="orders"))
    assert mentioned(plan, 'SELECT * FROM "ORDERS_current"') == plan.tables
    assert mentioned(plan, "SELECT 1") == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (2**70, 2**70),
        (b"\x00\xff", "00ff"),
        ([{"a": b"\x01"}, None], [{"a": "01"}, None]),
        (True, True),
    ],
)
def test_values_for_json(value, expected):
    assert json_value(value) == expected


@pytest.mark.parametrize(
    "query",
    ["CREATE TABLE t (i INT)", "SET threads = 1", "SELECT 1; SELECT 2", "", "ATTACH 'x'",
     "COPY (SELECT 1) TO '/tmp/x'", "INSTALL spatial", "DROP SCHEMA x", "CALL pragma_version()"],
)  # fmt: skip
def test_what_is_not_one_reading_statement_is_refused(query):
    with duckdb.connect() as session, pytest.raises(InputError, match="single read-only statement"):
        _run(session, query, None)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT 1 AS a, 2 AS a -- two", [[1, 2]]),
        ("SELECT TIMESTAMPTZ '2024-01-01 01:00:00.5+01';", [["2024-01-01T00:00:00.5+00:00"]]),
        ("FROM (VALUES (DATE '2024-02-29', TIMESTAMP '2024-01-01'))",
         [["2024-02-29", "2024-01-01T00:00:00"]]),
        ("WITH x AS (SELECT [TIMESTAMPTZ '2024-01-01 00:00:00+00'] AS a) SELECT a FROM x",
         [[["2024-01-01T00:00:00+00:00"]]]),
        ("SELECT i FROM range(3) r(i) ORDER BY i DESC", [[2], [1], [0]]),
    ],
)  # fmt: skip
def test_queries(query, rows):
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        assert _run(session, query, None).rows == rows


@pytest.mark.parametrize(
    "query",
    ["EXPLAIN ANALYZE COPY (SELECT 42) TO '{}'",
     "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 42) TO '{}'",
     "EXPLAIN (ANALYZE /*) SELECT 1 -- */) COPY (SELECT 42) TO '{}'",
     "/* /* */ EXPLAIN SELECT 1 -- */ EXPLAIN ANALYZE COPY (SELECT 42) TO '{}'",
     "--\rEXPLAIN ANALYZE COPY (SELECT 42) TO '{}' /*\nEXPLAIN SELECT 1 --*/",
     "EXPLAIN/**/ANALYZE COPY (SELECT 42) TO '{}'", "EXPLAIN ANALYZE CREATE TABLE made AS SELECT 1",
     "EXPLAIN COPY (SELECT 42) TO '{}'", "EXPLAIN (FORMAT ')') COPY (SELECT 42) TO '{}'",
     "EXPLAIN (FORMAT '') /* ' */ ANALYZE COPY (SELECT 42) TO '{}'"],
)  # fmt: skip
def test_explain_of_a_write_changes_nothing(query, tmp_path):
    file = tmp_path / "data.parquet"
    file.write_bytes(b"a file of the lake")
    with duckdb.connect() as session:
        with contextlib.suppress(InputError, duckdb.Error):
            assert _run(session, query.format(file), None).columns[0][0] == "explain_key"
        assert session.execute("SHOW TABLES").fetchall() == []
    assert file.read_bytes() == b"a file of the lake"


@pytest.mark.parametrize(
    "query",
    ["EXPLAIN ANALYZE COPY (SELECT 42) TO '/tmp/x'", "EXPLAIN ANALYSE CREATE TABLE t (i INT)",
     "EXPLAIN (ANALYZE) COPY (SELECT 42) TO '/tmp/x'"],
)  # fmt: skip
def test_explain_of_a_write_is_refused(query):
    with duckdb.connect() as session, pytest.raises(InputError, match="single read-only statement"):
        _run(session, query, None)


@pytest.mark.parametrize(
    "query",
    ["EXPLAIN (FORMAT 'json') SELECT 1", "EXPLAIN /* y */ ANALYZE SELECT 1",
     "EXPLAIN -- x\n ANALYZE SELECT 1",
     "EXPLAIN SELECT 1", "-- a comment\nEXPLAIN ANALYZE SELECT 1;", "EXPLAIN (SELECT 1)",
     "explain (format json) FROM range(3)", "EXPLAIN (ANALYZE true, FORMAT json) SELECT ')'"],
)  # fmt: skip
def test_explain_of_a_query_is_answered(query):
    with duckdb.connect() as session:
        [[_, plan]] = _run(session, query, None).rows
    assert plan


def test_a_limit_says_that_there_is_more():
    with duckdb.connect() as session:
        answer = _run(session, "SELECT * FROM range(10)", 3)
        assert (answer.rows, answer.more) == ([[0], [1], [2]], True)
        assert not _run(session, "SELECT * FROM range(3)", 3).more


def test_extensions_are_files_of_their_packages():
    assert all(extension_file(name).is_file() for name in ("avro", "httpfs", "iceberg"))


def test_time_before_first_commit_fails_only_where_it_is_read() -> None:
    moment = at_time("1970-01-01T00:00:00.999Z")
    assert relations.is_too_early(THREE, moment)
    assert not relations.is_too_early(THREE, NOW)
    assert not relations.is_too_early(THREE, at_time("1970-01-01T00:00:01Z"))
    with duckdb.connect() as session:
        session.execute(f"CREATE VIEW t AS {relations.refusal(THREE, THREE)}")
        assert _run(session, "SELECT 1 AS one", None).rows == [[1]]
        with pytest.raises(duckdb.Error, match=TOO_EARLY) as refused:
            _run(session, "SELECT count(*) FROM t", None)
    told = _too_early(str(refused.value), "1970-01-01")
    assert told.message == "--at '1970-01-01': t has nothing of that time"
    assert told.remedy == "ask for 1970-01-01T00:00:01+00:00 or later"


def test_a_table_without_changelog_has_no_rows_as_of_a_commit_time() -> None:
    with duckdb.connect() as session:
        defined = define_as_of(session, (), {"t": THREE}, 0, schema="lake")
        session.execute(f"CREATE VIEW t AS {defined['t']}")
        assert _run(session, "SELECT 1 AS one", None).rows == [[1]]
        with pytest.raises(duckdb.Error, match="t has no changelog") as refused:
            _run(session, "SELECT count(*) FROM t", None)
    assert _too_early(str(refused.value), None).remedy.endswith("query it without --as-of")


def test_state_is_complete_when_it_has_the_changelogs_last_append() -> None:
    def stamped(name: str, stamp: str) -> CatalogTable:
        summary = {naming.STAMP_PROPERTY: stamp}
        return parse_table(name, "s3://b/t/m.json", metadata((1, None, 1000, summary)))

    log = stamped("t_changes", ChangesStamp(ingested_through=7).to_json())
    for ingested, complete in ((7, True), (6, False)):
        state = stamped("t", state_stamp_json(AppliedThrough(ingested)))
        assert relations.is_applied(state, log, NOW) is complete
    empty = parse_table("t_changes", "s3://b/t/m.json", metadata())
    assert relations.is_applied(state, empty, NOW)


def test_live_rows_have_the_sources_columns() -> None:
    assert (
        relations.live_rows(THREE, schema="l") == 'SELECT "id" FROM "l"."t" WHERE NOT cdc_deleted'
    )


@pytest.mark.parametrize("query", ["SELECT * FROM public.t", "select * from T", "FROM s.t_x, t"])
def test_unknown_relation_names_those_of_the_table_that_is_meant(query: str) -> None:
    lake = cast(Reader, SimpleNamespace(plan=make_plan(make_table(table="T", name="shop_t"))))
    assert "use relations such as shop_t_current for public.T" in remedy(lake, query, "")


def test_tables_of_earlier_plans_are_those_with_a_changelog() -> None:
    class Stored:
        names = staticmethod(lambda: {"ev", "ev_changes", "t", "t_changes", "evolved", "other"})

    class Lake:
        plan = make_plan(make_table())
        catalog = Stored()

    lake = cast(Reader, Lake())
    assert mentioned_removed(lake, "select * from EV_current, t") == ("ev",)
