"""Values that Debezium cannot convert: no NULL takes their place, and no table stops.

Debezium writes NULL and a warning into the worker's log. With its mode `fail`, the update below
stopped the connector, and with it every table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

PIPELINE = """\
version: 1
name: odd
source: {database: postgres}
tables:
  public.numbers:
    key: [id]
    replica_identity: full
    columns: {id: bigint, v: int, ns: 'smallint[]', prices: 'numeric[]', moods: 'enum[]'}
  public.other:
    key: [id]
    columns: {id: bigint}
"""
CREATED = """
CREATE TYPE mood AS ENUM ('sad', 'NULL');
CREATE TABLE numbers (id bigint PRIMARY KEY, v int, ns smallint[], prices numeric[], moods mood[]);
ALTER TABLE numbers ALTER COLUMN ns SET STORAGE EXTERNAL;
ALTER TABLE numbers REPLICA IDENTITY FULL;
CREATE TABLE other (id bigint PRIMARY KEY);
"""
INSERT = """
INSERT INTO numbers SELECT %s, 1, array_agg(g),
  '{NaN, Infinity, 1.50, NULL}', '{sad, NULL, "NULL"}' FROM generate_series(1, 3000) g
"""
ARRAYS = "SELECT prices, moods FROM numbers_current ORDER BY id"
NUMBERS = "SELECT v, length(ns) > 9000 FROM numbers_current ORDER BY id"


def test_an_unconverted_value_is_no_null(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(PIPELINE)
    with lake_in(tmp_path) as lake, lake.connect() as source:
        source.execute(CREATED)
        source.execute(INSERT, (1,))
        lake.run("up", str(file))
        source.execute(INSERT, (2,))
        lake.assert_equal()
        arrays = ['["NAN","POSITIVE_INFINITY","1.50",null]', '["sad",null,"NULL"]']
        assert lake.sql(ARRAYS) == [arrays, arrays]

        # The large value is no longer sent, and its type has no placeholder.
        source.execute("ALTER TABLE numbers REPLICA IDENTITY DEFAULT")
        source.execute("UPDATE numbers SET v = 2 WHERE id = 1")
        source.execute("INSERT INTO other VALUES (1)")
        lake.eventually(lambda: lake.sql("SELECT id FROM other_current") == [[1]], seconds=120)
        lake.eventually(lambda: refused(lake) == [["UNSENT_VALUE"]], seconds=60)
        assert lake.sql(NUMBERS) == [[1, True], [1, True]]
        source.execute("ALTER TABLE numbers REPLICA IDENTITY FULL")
        lake.run("resync", "numbers")
        assert lake.sql(NUMBERS) == [[2, True], [1, True]]
        lake.assert_equal("--table", "other")


def refused(lake: RunningLake) -> list[list[str]]:
    return lake.sql("SELECT DISTINCT split_part(reason, ':', 1) FROM cdclake_quarantine")
