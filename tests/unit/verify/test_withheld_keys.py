"""Rows that the lake would have with the events that a rule withholds, in small lakes in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import duckdb
import pytest

from cdclake.debezium.position import POLL_PHASE
from cdclake.debezium.refusals import BROKEN_RULE
from cdclake.jobs.verify.first_pass import Sides
from cdclake.jobs.verify.mismatches import Mismatches
from cdclake.jobs.verify.withheld_keys import rows_with_withheld
from cdclake.plan import Table
from cdclake.verify.columns import compared_columns
from cdclake.verify.statements import Comparable
from tests.unit.verify.lakes import create, event, make_plan, make_table

RULE = f"{BROKEN_RULE}: range(v) is broken by column 'v' with the value -1"


def record(op: str, prev: int | None, lsn: int, **row: Any) -> tuple[bytes, bytes]:
    """The Kafka record of an event."""
    source = {
        "lsn": lsn,
        "sequence": json.dumps([prev and str(prev), str(lsn)]),
        "txId": prev,
        "ts_us": 1,
    }
    value = {"before": None, "after": row, "source": source, "op": op, "cdc_epoch": "1"}
    return json.dumps({"id": row["id"]}).encode(), json.dumps(value).encode()


def digests(
    log: Iterable[dict[str, Any]],
    *kept: tuple[bytes | None, bytes],
    reason: str = RULE,
    **facts: Any,
) -> dict[str, str]:
    """By key the digest of each row, of a lake with this changelog and these withheld records."""
    table = make_table(**facts)
    plan = make_plan(table)
    lengths = {column.source: None for column in table.columns}
    columns = compared_columns(table, plan, lengths)
    with duckdb.connect() as lake:
        lake.execute("SET TimeZone = 'UTC'")
        lake.execute("CREATE SCHEMA lake_db")
        lake.execute("SET search_path = 'lake_db'")
        create(lake, table, log)
        lake.execute(
            'CREATE TABLE cdclake_quarantine ("key" BLOB, "value" BLOB, "partition" INTEGER,'
            ' "offset" BIGINT, "table" VARCHAR, reason VARCHAR)'
        )
        for offset, (key, value) in enumerate(kept, 100):
            row = [key, value, 0, offset, table.name, reason]
            lake.execute("INSERT INTO cdclake_quarantine VALUES (?, ?, ?, ?, ?, ?)", row)
        side = Comparable("duckdb", table.name, columns)
        sides = Sides(table, side, side, ())
        return {
            key: digest
            for _, key, digest in rows_with_withheld(lake, sides, plan, "", all_hashes(lake, table))
        }


def all_hashes(lake: duckdb.DuckDBPyConnection, table: Table) -> list[int]:
    """The hashes of the keys 1 to 9."""
    found = lake.execute("SELECT CAST('0x' || substr(md5(i::VARCHAR), 1, 15) AS BIGINT) FROM"
                         " range(1, 10) AS t(i)")  # fmt: skip
    return [hash_ for (hash_,) in found.fetchall()]


CREATED = event("c", 10, 11, id=1, v=1, big="A")


def test_a_withheld_row_counts_at_its_position() -> None:
    withheld = digests([CREATED], record("u", 20, 21, id=1, v=-1, big="B"))
    assert withheld == digests([CREATED, event("u", 20, 21, id=1, v=-1, big="B")])
    assert withheld != digests([CREATED])
    later = event("u", 30, 31, id=1, v=3, big="C")
    older = digests([CREATED, later], record("u", 20, 21, id=1, v=-1, big="B"))
    assert older == digests([CREATED, later])


def test_a_withheld_insert_is_a_row_and_its_delete_removes_it() -> None:
    insert = record("c", 20, 21, id=2, v=-1, big="B")
    assert digests([CREATED], insert).keys() == {"1", "2"}
    assert digests([CREATED, event("d", 30, 31, id=2)], insert).keys() == {"1"}


def test_an_unsent_value_comes_from_the_event_that_had_it() -> None:
    plan = make_plan(make_table())
    unsent = record("u", 30, 31, id=1, v=-1, big=plan.placeholder)
    assert digests([CREATED], unsent) == digests([event("c", 10, 11, id=1, v=-1, big="A")])
    both = digests([CREATED], record("u", 20, 21, id=1, v=-1, big="B"), unsent)
    assert both == digests([event("c", 10, 11, id=1, v=-1, big="B")])


@pytest.mark.parametrize("identity", ["default", "full"])
def test_firehose_keeps_no_key_and_the_row_has_it(identity: str) -> None:
    _, value = record("u", 20, 21, id=1, v=-1, big="B")
    found = digests([CREATED], (None, value), replica_identity=identity)
    assert found == digests([CREATED, event("u", 20, 21, id=1, v=-1, big="B")])


def test_a_polled_row_counts_at_the_position_of_its_poll() -> None:
    """The record of a refused row is a snapshot's, as a bulk load writes it."""
    polled = event("r", 50, 50, phase=POLL_PHASE, id=1, v=1, big="A")
    _, value = record("r", None, 60, id=1, v=-1, big="B")
    found = digests([polled], (b'{"id": 1}', value), delivery="poll")
    assert found == digests([event("c", 10, 11, id=1, v=-1, big="B")])
    _, value = record("r", None, 40, id=1, v=-1, big="B")
    assert digests([polled], (b'{"id": 1}', value), delivery="poll") == digests([polled])


def test_other_refused_records_explain_nothing() -> None:
    insert = record("c", 20, 21, id=2, v=-1, big="B")
    found = digests([CREATED], insert, reason="NOT_REPRESENTABLE: integer cannot hold 'v'")
    assert found == digests([CREATED])


def test_only_a_key_with_exactly_such_a_row_is_withheld() -> None:
    candidates = Mismatches([(1, "a"), (2, "b"), (3, "c"), (4, "d")])
    for last in (False, True):
        candidates.begin_round()
        rows = [(1, "a", "A" * 32), (2, "b", "B" * 32), (4, "d", "D" * 32)]
        candidates.look_at_source(rows)
        candidates.look_at_lake([(2, "b", "X" * 32), (3, "c", "C" * 32)])
        candidates.look_at_source(rows)
        candidates.decide(last=last)
    assert sorted(candidates.differing_hashes()) == [1, 2, 3, 4]
    candidates.mark_withheld([(1, "a", "A" * 32), (2, "b", "Y" * 32), (3, "c", "C" * 32)])
    kinds = ("missing", "different", "extra", "withheld")
    assert [candidates.count(kind) for kind in kinds] == [1, 1, 1, 1]
    assert [verdict for *_, verdict in candidates.examples(9)][-1] == "withheld"
    assert sorted(candidates.differing_hashes()) == [2, 3, 4]
