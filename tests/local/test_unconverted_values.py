"""Values that Debezium cannot convert: no NULL takes their place, and no table stops.

Debezium writes NULL and a warning into the worker's log. With its mode `fail`, the update below
stopped the connector, and with it every table. So did the values of columns that are NOT NULL,
before the connector had a processor and a transform for them (java/).
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
CREATE DOMAIN prices AS numeric[];
CREATE TABLE numbers (id bigint PRIMARY KEY, v int, ns smallint[], prices prices, moods mood[]);
ALTER TABLE numbers ALTER COLUMN ns SET STORAGE EXTERNAL;
ALTER TABLE numbers REPLICA IDENTITY FULL;
CREATE TABLE other (id bigint PRIMARY KEY);
"""
INSERT = """
INSERT INTO numbers SELECT %s, 1, array_agg(g),
  '{NaN, Infinity, 1.50, NULL}', '{sad, NULL, "NULL"}' FROM generate_series(1, 3000) g
"""
STRICT_PIPELINE = """\
version: 1
name: odd
source: {database: postgres}
tables:
  public.strict:
    key: [id]
    replica_identity: full
    columns: {id: bigint, v: int, ns: 'smallint[]', at: timetz}
  public.other:
    key: [id]
    columns: {id: bigint}
"""
STRICT_CREATED = """
CREATE TABLE strict (id bigint PRIMARY KEY, v int NOT NULL, ns smallint[] NOT NULL,
  at timetz NOT NULL DEFAULT '10:00Z');
ALTER TABLE strict ALTER COLUMN ns SET STORAGE EXTERNAL;
ALTER TABLE strict REPLICA IDENTITY FULL;
CREATE TABLE other (id bigint PRIMARY KEY);
INSERT INTO strict SELECT 1, 1, array_agg(g) FROM generate_series(1, 3000) g;
INSERT INTO strict VALUES (2, 1, '{}', '12:00:00+00:19:32');
"""
ARRAYS = "SELECT prices, moods FROM numbers_current ORDER BY id"
STRICT = "SELECT id, v FROM strict_current ORDER BY id"
QUARANTINED = "SELECT * FROM cdclake_quarantine"
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


def test_an_unconverted_value_that_is_not_null_stops_no_table(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(STRICT_PIPELINE)
    with lake_in(tmp_path) as lake, lake.connect() as source:
        source.execute(STRICT_CREATED)
        lake.run("up", str(file))
        lake.eventually(lambda: lake.sql(STRICT) == [[1, 1]], seconds=60)
        assert refused(lake) == [["UNCONVERTED_VALUE"]]

        source.execute("ALTER TABLE strict REPLICA IDENTITY DEFAULT")
        source.execute("UPDATE strict SET v = 2 WHERE id = 1")
        source.execute("INSERT INTO strict VALUES (3, 1, '{}', '12:00:00-00:19:32')")
        source.execute("INSERT INTO other VALUES (1)")
        lake.eventually(lambda: lake.sql("SELECT id FROM other_current") == [[1]], seconds=120)
        lake.eventually(lambda: len(lake.sql(QUARANTINED)) == 3, seconds=60)
        assert refused(lake) == [["UNCONVERTED_VALUE"]]
        assert lake.sql(STRICT) == [[1, 1]]

        # The rows become whole, or go.
        source.execute("ALTER TABLE strict REPLICA IDENTITY FULL")
        source.execute("UPDATE strict SET at = '13:00Z' WHERE id = 2")
        source.execute("DELETE FROM strict WHERE id = 3")
        lake.run("resync", "strict")
        assert lake.sql(STRICT) == [[1, 2], [2, 1]]
        lake.assert_equal()


def refused(lake: RunningLake) -> list[list[str]]:
    return lake.sql("SELECT DISTINCT split_part(reason, ':', 1) FROM cdclake_quarantine")
