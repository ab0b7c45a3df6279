"""What DuckDB reads for queries of `<t>_current`: shown by its plans, over real Parquet files."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.tail_facts import TailFacts, view_over_tail
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.reader.tail import read_tail
from tests.unit.verify.lakes import create, event, make_table

TABLE, APPLIED = make_table(), AppliedThrough(10, carried=("big",))
Plan = Mapping[str, Any]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A state of the keys 1 to 3, and a tail that updates 2 and inserts 4, as views of files."""
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        applied = [event("c", 1, key, id=key, v=key, big="x") for key in (1, 2, 3)]
        tail = [
            event("u", 20, 21, ingested=20, id=2, v=20, big="?"),
            event("c", 22, 23, ingested=20, id=4, v=4, big="y"),
        ]
        state = [{**row, "cdc_deleted": False} for row in applied]
        create(session, TABLE, [*applied, *tail], state)
        for name in ("t", "t_changes"):
            file = tmp_path / f"{name}.parquet"
            session.execute(f"COPY {name} TO '{file}' (FORMAT parquet)")
            session.execute(f"DROP TABLE {name}")
            session.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{file}')")
        yield session


def define(session: duckdb.DuckDBPyConnection, facts: TailFacts) -> None:
    """Create the view as a reader does, by name."""
    view = view_over_tail(
        TABLE, facts, state="t", changes="t_changes", applied=APPLIED, dialect=DUCKDB
    )
    session.execute(f"CREATE VIEW t_current AS {view}")


def operators(session: duckdb.DuckDBPyConnection, query: str) -> list[Plan]:
    """The operators of a query's plan, as it was run: scans then have the name of their file."""
    [(_, text)] = session.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query}").fetchall()

    def flat(plan: Plan) -> Iterator[Plan]:
        for child in plan["children"]:
            yield child
            yield from flat(child)

    return list(flat(json.loads(text)))


def scans(plan: list[Plan], table: str) -> list[Plan]:
    def of_table(facts: Plan) -> bool:
        return f"/{table}.parquet" in facts.get("Filename(s)", "")

    return [each["extra_info"] for each in plan if of_table(each["extra_info"])]


def joins(plan: list[Plan]) -> list[str]:
    return [each["extra_info"]["Join Type"] for each in plan if "JOIN" in each["operator_name"]]


def listed(fact: str | list[str]) -> set[str]:
    return {fact} if isinstance(fact, str) else set(fact)


def test_a_tail_without_events_adds_no_join_and_no_scan(session) -> None:
    define(session, TailFacts())
    plan = operators(session, "SELECT count(*) FROM t_current")
    assert joins(plan) == [] and scans(plan, "t_changes") == []
    [scan] = scans(plan, "t")
    assert (listed(scan["Projections"]), "cdc_deleted" in str(scan["Filters"])) == ({""}, True)


@pytest.mark.parametrize("where", ["id = 2", "id BETWEEN 2 AND 3"])
def test_predicates_on_the_key_reach_every_scan(session, where: str) -> None:
    define(session, read_tail(session, TABLE, APPLIED, "t_changes"))
    query = f"SELECT * FROM t_current WHERE {where} ORDER BY id"
    assert session.execute(query).fetchall() == [(2, 20, "x"), (3, 3, "x")][: 1 + ("B" in where)]
    plan = operators(session, query)
    assert sorted(joins(plan)) == ["LEFT", "RIGHT"]
    found = [*scans(plan, "t"), *scans(plan, "t_changes")]
    assert len(found) == 4
    assert all("id" in str(scan["Filters"]) for scan in found)


@pytest.mark.parametrize(
    ("tail", "applied", "is_carried"),
    [
        (TailFacts(events=1), AppliedThrough(10), False),
        (TailFacts(events=1, lacks_values=True), AppliedThrough(10), True),
        (TailFacts(events=1), APPLIED, True),
    ],
    ids=["never", "in the tail", "in the state"],
)
@pytest.mark.parametrize("identity", ["default", "full"])
def test_values_are_compared_if_an_event_lacks_any(identity, tail, applied, is_carried) -> None:
    table = make_table(replica_identity=identity)
    view = view_over_tail(
        table, tail, state="t", changes="t_changes", applied=applied, dialect=DUCKDB
    )
    assert ("cdc_value_positions" in view) == is_carried


def test_a_count_reads_only_what_decides_about_rows(session) -> None:
    define(session, read_tail(session, TABLE, APPLIED, "t_changes"))
    query = "SELECT count(*) FROM t_current"
    assert session.execute(query).fetchall() == [(4,)]
    [stored, new] = scans(operators(session, query), "t")
    assert listed(stored["Projections"]) == {"id", "cdc_position", "cdc_deleted"}
    assert listed(new["Projections"]) == {"id"}
