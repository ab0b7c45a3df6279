"""Transactions of 500,000 rows: PostgreSQL sends each at once, when it commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(2400)]

ROWS = 500_000
PIPELINE = """\
version: 1
name: mass
source: {database: postgres}
tables:
  public.mass:
    key: [id]
    columns: {id: bigint, v: int, name: text}
  public.other:
    key: [id]
    columns: {id: bigint}
"""


def test_a_transaction_of_500000_rows_arrives(tmp_path: Path) -> None:
    """An INSERT ... SELECT, an UPDATE of every row, a change of every tenth key, all in one."""
    file = tmp_path / "mass.yaml"
    file.write_text(PIPELINE)
    with lake_in(tmp_path) as lake, lake.connect() as connection:
        connection.execute("CREATE TABLE mass (id bigint PRIMARY KEY, v int, name text)")
        connection.execute("CREATE TABLE other (id bigint PRIMARY KEY)")
        lake.run("up", str(file))
        started = {name: lake.pid(name) for name in ("connect", "stream")}
        with connection.transaction():
            connection.execute(
                "INSERT INTO mass SELECT g, 0, 'name ' || g FROM generate_series(1, %s::int) g",
                (ROWS,),
            )
            connection.execute("UPDATE mass SET v = id % 1000")
            connection.execute("UPDATE mass SET id = id + %s WHERE id %% 10 = 0", (ROWS,))
        connection.execute("INSERT INTO other VALUES (1)")
        lake.eventually(lambda: lake.sql("SELECT count(*) FROM other_current") == [[1]], 900)
        lake.eventually(lambda: in_state(lake) == ROWS, 900)
        lake.assert_equal()
        lake.assert_each_identity_once("mass", "id")
        assert {name: lake.pid(name) for name in started} == started
        for name in started:
            assert "OutOfMemoryError" not in (lake.home / "logs" / f"{name}.log").read_text()


def in_state(lake: RunningLake) -> int:
    [[rows]] = lake.sql("SELECT count(*) FROM mass_current WHERE v = id % 1000")
    return int(rows)
