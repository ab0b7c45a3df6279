"""Rows whose partition column changes, becomes NULL or moves with the key: each stays one row.

The hazard is named in the third seed: an upsert with an index per partition leaves the old row in
its old partition, and a delete finds only one of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.maintenance.actions import MaintainedTable, compact
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark
SOFT_FULL = ("soft", "full")
SHAPES = [
    pytest.param(
        deletes, identity, marks=() if (deletes, identity) == SOFT_FULL else pytest.mark.slow
    )
    for deletes in ("hard", "soft")
    for identity in ("default", "full")
]


def old(engine: Engine, **values: Any) -> dict[str, Any]:
    """The event's `before`: the whole row, with full replica identity."""
    return {"before": values} if engine.table.replica_identity == "full" else {}


def assert_rows(engine: Engine, expected: Mapping[int, str | None]) -> None:
    """Live rows by key, read as a whole, by partition and in a rebuilt state."""
    lake, name = engine.lake, engine.table.name
    assert {key: v for key, (v, _) in engine.state().items()} == expected
    rows = lake.read(name)
    assert rows.count() == rows.select("id").distinct().count(), "a key has two rows"
    for value in ("Peru", "Kenya", None):
        only = "v IS NULL" if value is None else f"v = '{value}'"
        live = lake.read(name).where(f"{only} AND NOT {naming.DELETED}").collect()
        assert {row["id"] for row in live} == {k for k, v in expected.items() if v == value}


def compacted(engine: Engine) -> None:
    now, history = datetime.now(UTC), timedelta(days=90)
    compact(MaintainedTable(engine.lake, engine.table, engine.table.name, now, history))


@pytest.mark.parametrize(("deletes", "identity"), SHAPES)
def test_a_row_that_moves_stays_one_row(spark: SparkSession, deletes: str, identity: str) -> None:
    engine = Engine(spark, plan_of(partition_by=("v",), deletes=deletes, replica_identity=identity))
    e = engine.event
    engine.run(*(e("c", 10, 10 + key, id=key, v="Peru") for key in range(1, 7)))
    engine.run(
        e("u", 20, 20, id=1, v="Kenya", **old(engine, id=1, v="Peru")),
        e("u", 20, 21, id=2, v=None, **old(engine, id=2, v="Peru")),
        e("d", 20, 22, id=3, **old(engine, id=3, v="Peru")),
        # The key changes and the row moves: Debezium sends a delete and a creation.
        e("d", 20, 23, id=4, **old(engine, id=4, v="Peru")), e("c", 20, 23, id=14, v="Kenya"),
    )  # fmt: skip
    assert_rows(engine, {1: "Kenya", 2: None, 5: "Peru", 6: "Peru", 14: "Kenya"})
    compacted(engine)
    engine.run(
        e("d", 30, 30, id=1, **old(engine, id=1, v="Kenya")),
        e("d", 30, 31, id=2, **old(engine, id=2, v=None)),
        e("c", 30, 32, id=3, v="Kenya"),
        e("u", 30, 33, id=5, v=None, **old(engine, id=5, v="Peru")),
        e("u", 30, 34, id=5, v="Peru", **old(engine, id=5, v=None)),
        e("d", 30, 35, id=14, **old(engine, id=14, v="Kenya")),
    )  # fmt: skip
    expected = {3: "Kenya", 5: "Peru", 6: "Peru"}
    assert_rows(engine, expected)
    compacted(engine)
    assert_rows(engine, expected)
    rebuild_state(engine.lake, engine.table)
    assert_rows(engine, expected)
