"""Columns that were dropped: what they held last stays, also if one of their name is added again.

By default test_columns.py shows that a table without a declared column stops.
"""

from dataclasses import replace

import pytest

from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.plan import Column
from tests.spark.events import Engine, plan_of
from tests.spark.test_columns import ID, MAIL, declare, event, rows, stopped_at, table_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("kind", ["text", "integer"])
def test_a_column_that_comes_again_begins_anew(spark, kind: str) -> None:
    engine = table_of(spark, MAIL)
    engine.run(event(engine, "c", 10, {"mail": "a"}), event(engine, "c", 11, {"mail": "b"}, id=2))
    declare(engine)
    engine.run(event(engine, "u", 20, {}))
    again = replace(MAIL, type=kind)
    declare(engine, again)
    assert rows(engine, "mail", "cdc_dropped_mail") == {1: (None, "a"), 2: (None, "b")}
    new = "n" if kind == "text" else 5
    assert stopped_at(engine.run(event(engine, "u", 30, {"mail": new}))) is None
    kept = {1: (new, "a"), 2: (None, "b")}
    assert rows(engine, "mail", "cdc_dropped_mail") == kept
    rebuild_state(engine.lake, engine.table)
    assert rows(engine, "mail", "cdc_dropped_mail") == kept


@pytest.mark.parametrize("version", [2, 3])
def test_a_rebuilt_state_keeps_what_a_dropped_column_held_last(spark, version: int) -> None:
    """A row whose key is inserted again has no value of the row that was deleted."""
    columns = (ID, MAIL, Column(source="seen", name="seen", type="timestamptz"))
    engine = Engine(spark, replace(plan_of(columns=columns), format_version=version))
    seen = {"seen": "2026-01-01T00:00:00Z"}
    engine.run(*(event(engine, "c", 10 + id, {"mail": "a", **seen}, id=id) for id in (1, 2, 3)))
    engine.run(event(engine, "u", 20, {"mail": None, **seen}, id=2))
    declare(engine)
    engine.run(
        event(engine, "u", 30, {}),
        event(engine, "d", 31, None, id=3),
        event(engine, "c", 32, {}, id=4),
    )
    engine.run(event(engine, "c", 33, {}, id=3))
    names = ("cdc_dropped_mail", "cdc_dropped_seen")
    before = rows(engine, *names)
    assert {id: mail for id, (mail, _) in before.items()} == {1: "a", 2: None, 3: None, 4: None}
    rebuild_state(engine.lake, engine.table)
    assert rows(engine, *names) == before


def test_a_rebuild_gives_no_dropped_value_to_a_row_that_the_state_lacks(spark) -> None:
    engine = table_of(spark, MAIL)
    engine.run(*(event(engine, "c", 10 + id, {"mail": "a"}, id=id) for id in (1, 2, 3)))
    declare(engine)
    engine.run(event(engine, "u", 20, {}))
    pending = [event(engine, "u", 30, {})]
    pending += [event(engine, "d", 30 + id, None, id=id) for id in (2, 3)]
    engine.run(*pending, event(engine, "c", 34, {}, id=3), apply_now=False)
    rebuild_state(engine.lake, engine.table)
    found = engine.lake.read(engine.table.name).collect()
    assert {row["id"]: row["cdc_dropped_mail"] for row in found} == {1: "a", 2: None, 3: None}
