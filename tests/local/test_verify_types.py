"""Every type as a real PostgreSQL has it against the events that Debezium made of the same rows.

The events are those of `make record` (tests/recorded/types.sql): rows below 100 came by the
snapshot, the others by the stream. What Debezium loses of them, `verify` must say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import psycopg
import pytest

from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.views import AppliedThrough, current_view
from cdclake.jobs.verify import table_results
from cdclake.jobs.verify.compared_rows import LakeEngine
from cdclake.jobs.verify.first_pass import FirstPass, Sides, first_pass
from cdclake.jobs.verify.report import TableComparison
from cdclake.jobs.verify.run import verify_tables
from cdclake.plan import Plan, Table
from tests.local.source_database import run, running_server
from tests.recorded.limits import LIMITS
from tests.recorded.recording import FOLDER, SALT, Recording
from tests.recorded.script import Statement, steps
from tests.unit.verify.lakes import create, event

pytestmark = pytest.mark.local

RECORDED = Recording.load("types")
LOST = {column: set(rows) for column, rows in LIMITS["typed"].items()}


class LakeOfEvents:
    """A reader over the recorded events: nothing but their log, with the real views."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.faults: list[str] = []  # statements that corrupt the log

    @contextmanager
    def open(self, tables: Sequence[Table]) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect() as session:
            session.execute("SET TimeZone = 'UTC'")
            session.execute(f"CREATE SCHEMA {self.plan.lake_database}")
            session.execute(f"USE {self.plan.lake_database}")
            for table in tables:
                rows = [record.event["after"] for record in RECORDED.of_topic(table.topic)]
                create(
                    session, table, [logged(table, number, row) for number, row in enumerate(rows)]
                )
            for fault in self.faults:
                session.execute(fault)
            for table in tables:
                view = current_view(
                    table, state=table.name, changes=table.changes,
                    applied=AppliedThrough(), dialect=DUCKDB,
                )  # fmt: skip
                session.execute(f"CREATE VIEW {table.name}_current AS {view}")
            yield session


def logged(table: Table, number: int, row: dict[str, Any]) -> dict[str, Any]:
    """The event's row as the log holds it: what is no scalar of its column is JSON or text."""
    values: dict[str, Any] = {}
    for column in table.columns:
        value = row.get(column.source)
        if column.column_type.log == "string" and value is not None and not isinstance(value, str):
            value = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        values[column.name] = value
    return event("c", 1, number, **values)


@contextmanager
def typed_source() -> Iterator[str]:
    """A server with the recorded tables; its DSN."""
    with running_server() as server:
        dsn = f"{server}/postgres"
        with psycopg.connect(dsn, autocommit=True) as connection:
            for step in steps((FOLDER / "types.sql").read_text()):
                if isinstance(step, Statement):
                    connection.execute(step.sql.encode())
        yield dsn


@pytest.fixture(scope="module")
def dsn():
    with typed_source() as dsn:
        yield dsn


def differing(report: TableComparison) -> dict[str, set[str | None]]:
    """The ids of the rows that differ, by column."""
    found: dict[str, set[str | None]] = {}
    for example in report.first:
        for column in example.columns:
            found.setdefault(column, set()).add(example.key["id"])
    return found


def examples_of(report: TableComparison) -> list[tuple[str, str, tuple[str, ...]]]:
    """The differing rows: kind, key and columns."""
    return sorted((each.kind, repr(each.key), tuple(each.columns)) for each in report.first)


def compare(dsn: str, plan: Plan, reader: Any, name: str, **more: Any) -> TableComparison:
    """The report of one table."""
    report = verify_tables(
        plan,
        [plan.table(name)],
        dsn=dsn,
        salt=SALT,
        reader=reader,
        wait=lambda _tables, _look: {},
        **more,
    )
    return report.tables[0]


def assert_shown_as_in_duckdb(
    engine_of: Callable[[Plan, list[dict[str, Any]]], LakeEngine],
) -> None:
    """Compare every type with a real source, by an engine over the same log and by DuckDB."""
    plan = RECORDED.plan
    with typed_source() as dsn:
        for name in ("typed", "keyed"):
            table = plan.table(name)
            rows = [record.event["after"] for record in RECORDED.of_topic(table.topic)]
            log = [logged(table, number, row) for number, row in enumerate(rows)]
            found = compare(dsn, plan, LakeOfEvents(plan), name, engine=engine_of(plan, log))
            of_duckdb = compare(dsn, plan, LakeOfEvents(plan), name)
            assert examples_of(found) == examples_of(of_duckdb)
            assert (found.missing, found.extra) == (of_duckdb.missing, of_duckdb.extra)
            assert found.source_rows == found.lake_rows


@pytest.fixture
def plan():
    return RECORDED.plan


def test_every_type_but_what_debezium_loses(dsn, plan):
    report = compare(dsn, plan, LakeOfEvents(plan), "typed")
    assert (report.missing, report.extra, report.unsettled) == (0, 0, 0)
    assert differing(report) == LOST
    assert report.omitted_columns == ["c_gen"]
    assert report.source_rows == report.lake_rows == 14


def test_what_debezium_changes_or_no_lake_holds_is_found(dsn, plan):
    changed = {column: set(rows) for column, rows in LIMITS["limits"].items()}
    too_late = {"t": {"4", "104"}, "z": {"4", "104"}}
    report = compare(dsn, plan, LakeOfEvents(plan), "limits")
    assert differing(report) == changed | too_late


def test_composite_keys_of_times_are_found_again(dsn, plan):
    report = compare(dsn, plan, LakeOfEvents(plan), "keyed")
    assert {(example.kind, example.key["d"]) for example in report.first} == {
        ("missing", "0044-03-15 BC"), ("extra", "0044-03-15"),
    }  # fmt: skip
    assert report.omitted_columns == ["spans", "prices"]
    assert report.source_rows == report.lake_rows == 4


FAULTS = {
    "c_bool": "NOT c_bool", "c_int2": "c_int2 + 1", "c_oid": "c_oid - 1", "c_real": "0.10000001",
    "c_double": "c_double * 1.0000000000000002", "c_num": "'1.501'", "c_num122": "'12.31'",
    "c_num33": "'0.124'", "c_money": "'-1234.57'", "c_date": "c_date + 1", "c_ts": "c_ts + 1",
    "c_tstz": "'2024-01-01T22:04:05.123457Z'", "c_time": "c_time + 1", "c_timetz": "'04:50:31Z'",
    "c_interval": "'P1Y2M-3DT4H5M6.79S'", "c_bytea": "'AP8R'", "c_uuid": "upper(c_uuid)",
    "c_text": "c_text || ' '", "c_char": "rtrim(c_char)", "c_json": "'{\"a\":2}'",
    "c_bit1": "'false'", "c_bit10": "'BA=='", "c_varbit": "'not base64'", "c_enum": "'sad'",
    "c_point": "'{\"x\":1.5,\"y\":2}'", "c_range": "'empty'", "c_texts": "'[\"a\"]'",
    "c_ints": "'[1,null,-4]'", "c_floats": "'not json'", "c_reals": "'[0.1]'",
    "c_dates": "'[null,19723]'", "c_byteas": "'[\"AP8=\",null]'", "c_hash": "'0'",
    "c_hash20": "c_hash", "c_cut": "'abcde'", "c_jsons": "'[]'", "c_timetzs": "NULL",
    "c_citext": "upper(c_citext)", "c_hstore": "'{}'", "c_ltree": "'Top'", "c_mac": "NULL",
    "c_int8range": "'empty'", "c_num380": "'99999999999999999999999999999999999998'",
    "c_short": "c_short || ' '", "c_enums": "'[\"sad\"]'", "c_longs": "'[9007199254740992,null]'",
    "c_numranges": "'[\"[1.1,2.5)\",null]'",
}  # fmt: skip


def test_one_corrupted_value_of_any_type_is_found(dsn, plan):
    reader = LakeOfEvents(plan)
    changes = ", ".join(f"{column} = {value}" for column, value in FAULTS.items())
    reader.faults = [f"UPDATE typed_changes SET {changes} WHERE id = 101"]
    report = compare(dsn, plan, reader, "typed")
    example = next(example for example in report.first if example.key["id"] == "101")
    assert set(example.columns) == FAULTS.keys()


def test_a_missing_and_an_extra_row_are_found(dsn, plan):
    reader = LakeOfEvents(plan)
    reader.faults = [
        "DELETE FROM typed_changes WHERE id = 104",
        "INSERT INTO typed_changes SELECT * REPLACE (999 AS id) FROM typed_changes WHERE id = 2",
    ]
    report = compare(dsn, plan, reader, "typed")
    assert (report.missing, report.extra) == (1, 1)
    kinds = {example.key["id"]: example.kind for example in report.first}
    assert (kinds["104"], kinds["999"]) == ("missing", "extra")


def test_a_compared_table_is_not_locked_while_another_is_read(dsn, plan, monkeypatch):
    """A rewrite of the first table neither waits nor changes what is found of it."""
    tables = [plan.table("keyed"), plan.table("limits")]
    expected = compare(dsn, plan, LakeOfEvents(plan), "keyed")
    passes: list[FirstPass] = []
    reader: Any = LakeOfEvents(plan)

    def rewriting(sides: Sides, *read: Any) -> FirstPass:
        if passes:
            run(
                dsn,
                "SET lock_timeout = '200ms'",
                "ALTER TABLE public.keyed SET UNLOGGED",
                "ALTER TABLE public.keyed SET LOGGED",
            )
        passes.append(first_pass(sides, *read))
        return passes[-1]

    monkeypatch.setattr(table_results, "first_pass", rewriting)
    found = verify_tables(
        plan,
        tables,
        dsn=dsn,
        salt=SALT,
        reader=reader,
        wait=lambda _tables, _look: {},
    )
    assert len(passes) == 2
    keyed = found.tables[0]
    assert examples_of(keyed) == examples_of(expected)
    assert (keyed.source_rows, keyed.lake_rows) == (4, 4)
