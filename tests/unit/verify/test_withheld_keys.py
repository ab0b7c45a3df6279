"""Rows that the lake would have with the events that a rule withholds, in small lakes in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from cdclake.debezium.position import POLL_PHASE
from cdclake.debezium.refusals import BROKEN_RULE
from cdclake.jobs.verify.first_pass import Sides
from cdclake.jobs.verify.mismatches import Mismatches
from cdclake.jobs.verify.withheld_keys import explain, read_withheld, rebuilt
from cdclake.plan import Plan, Table
from cdclake.quality_rule import QualityRule, ValueLimit
from cdclake.verify.columns import compared_columns
from cdclake.verify.statements import Comparable
from tests.unit.verify.lakes import create, event, make_plan, make_table

RULE = f"{BROKEN_RULE}: range(v) is broken by column 'v' with the value -1"
POSITIVE = QualityRule(
    name="range(v)", kind="rows", limit=ValueLimit(column="v", test="range", low="0")
)


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


@contextmanager
def small_lake(
    log: Iterable[dict[str, Any]], *kept: tuple[bytes | None, bytes], reason: str, **facts: Any
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Sides, Plan]]:
    """A lake with this changelog and these withheld records."""
    table = make_table(**{"checks": (POSITIVE,), **facts})
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
        yield lake, Sides(table, side, side, ()), plan


def digests(
    log: Iterable[dict[str, Any]],
    *kept: tuple[bytes | None, bytes],
    reason: str = RULE,
    withheld: bool = True,
    **facts: Any,
) -> dict[str, str]:
    """By key the digest of each row that the lake would have with, or without, these records."""
    with small_lake(log, *kept, reason=reason, **facts) as (lake, sides, plan):
        read_withheld(lake, sides.table, plan)
        hashes = all_hashes(lake, sides.table)
        found = rebuilt(lake, sides, plan, "", hashes, withheld=withheld)
        return {key: digest for _, key, digest in found}


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


def test_a_changed_key_has_its_value_after_a_change_to_full() -> None:
    moved = [event("d", 20, 21, id=1), event("c", 20, 21, id=2, v=1, big="?")]
    found = digests(
        [CREATED, *moved], record("u", 30, 31, id=2, v=-1, big="B"), withheld=False,
        replica_identity="full",
    )  # fmt: skip
    assert found == digests([event("c", 10, 11, id=2, v=1, big="A")])


def test_other_refused_records_explain_nothing() -> None:
    insert = record("c", 20, 21, id=2, v=-1, big="B")
    found = digests([CREATED], insert, reason="NOT_REPRESENTABLE: integer cannot hold 'v'")
    assert found == digests([CREATED])


def test_events_that_no_rule_withholds_any_more_explain_nothing() -> None:
    inserts = [record("c", 20 + n, 21 + n, id=n, v=-n, big="B") for n in (2, 8)]
    lower = replace(POSITIVE, limit=ValueLimit(column="v", test="range", low="-5"))
    assert digests([CREATED], *inserts, checks=(lower,)).keys() == {"1", "8"}
    assert digests([CREATED], *inserts, checks=()) == digests([CREATED])


def settled(
    places: Mapping[tuple[int, str], tuple[str, str]],
) -> Mismatches:
    """Keys that differ by these digests of the source and the lake, in both of two rounds."""
    candidates = Mismatches(places)
    source, lake = (
        [(*place, sides[side]) for place, sides in places.items() if sides[side]] for side in (0, 1)
    )
    for last in (False, True):
        candidates.begin_round()
        candidates.look_at_source(source)
        candidates.look_at_lake(lake)
        candidates.look_at_source(source)
        candidates.decide(last=last)
    return candidates


def test_only_a_key_with_exactly_such_a_row_is_withheld() -> None:
    a, b, x, y = "A" * 32, "B" * 32, "X" * 32, "Y" * 32
    sides = ((a, ""), (b, x), ("", x), (a, ""), (b, x))
    candidates = settled(dict(zip(enumerate("abcde", 1), sides, strict=True)))
    assert sorted(candidates.differing_hashes()) == [1, 2, 3, 4, 5]
    candidates.look_at_accepted([(2, "b", x), (3, "c", x), (5, "e", x)])
    candidates.mark_withheld([(1, "a", a), (2, "b", y), (3, "c", x), (4, "other", a), (5, "e", b)])
    kinds = ("missing", "different", "extra", "withheld")
    assert [candidates.count(kind) for kind in kinds] == [1, 1, 1, 2]
    assert [verdict for *_, verdict in candidates.examples(9)][-2:] == ["withheld"] * 2
    assert sorted(candidates.differing_hashes()) == [2, 3, 4]


def test_a_row_that_the_accepted_events_do_not_give_is_a_difference() -> None:
    source, accepted, other = "S" * 32, "A" * 32, "X" * 32
    shown = {1: accepted, 2: other, 3: "", 4: other, 5: accepted * 2, 6: source * 2}
    candidates = settled({(n, str(n)): (source, lake) for n, lake in shown.items()})
    candidates.look_at_accepted((n, str(n), accepted) for n in (1, 2, 3, 5, 5, 6))
    candidates.mark_withheld((n, str(n), source) for n in shown)
    # A wrong row, a lost one, one that only withheld events could give, and rows that occur twice.
    assert candidates.differing_hashes() == [2, 3, 4, 5, 6]
    kinds = ("missing", "different", "extra", "withheld")
    assert [candidates.count(kind) for kind in kinds] == [1, 2, 2, 1]


@pytest.mark.parametrize(("shown", "verdict"), [("X" * 32, "different"), (None, "withheld")])
def test_the_lake_must_show_what_the_accepted_events_give(shown: str | None, verdict: str) -> None:
    update = record("u", 20, 21, id=1, v=-1, big="B")
    accepted = digests([CREATED], update, withheld=False)["1"]
    assert accepted == digests([CREATED])["1"]
    with small_lake([CREATED], update, reason=RULE) as (lake, sides, plan):
        hash_ = all_hashes(lake, sides.table)[0]
        source = digests([CREATED], update)["1"]
        candidates = settled({(hash_, "1"): (source, shown or accepted)})
        explain(candidates, lake, sides, plan, "")
    assert [found for *_, found in candidates.examples(1)] == [verdict]
