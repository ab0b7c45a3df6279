"""Large values that events leave out: of rejoining tables, quarantined events and moved rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.local.repeated_work import repeated
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

CREATED = """
create table visits (id bigint primary key, page text, body text);
create table counted (id int primary key, n int not null, body text);
alter table visits alter body set storage external;
alter table counted alter body set storage external;
insert into visits select i, 'page', repeat('first', 2000) from generate_series(1, 100) i;
insert into counted select i, i, repeat('first', 2000) from generate_series(1, 100) i;
"""
COUNTED = """\
version: 1
name: kept
source: {database: postgres}
policies: {widened_columns: stop}
tables:
  public.counted:
    key: [id]
    columns: {id: int, n: int, body: text}
"""
VISITS = """\
  public.visits:
    key: [id]
    columns: {id: bigint, page: text, body: text}
"""
LARGE = 3_000_000_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with lake_in(tmp_path_factory.mktemp("lake")) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        declare(running, COUNTED + VISITS)
        running.assert_equal()
        yield running


def declare(lake: RunningLake, text: str) -> dict[str, Any]:
    file: Path = lake.home.parent / "kept.yaml"
    file.write_text(text)
    return lake.run("up", str(file))


def table_of(lake: RunningLake, name: str) -> dict[str, Any]:
    return next(t for t in lake.run("status")["tables"] if t["table"] == name)


@contextmanager
def updating(lake: RunningLake, statement: str) -> Iterator[None]:
    """Run the statement all the time, so that each chunk of a snapshot has a change of it."""
    with lake.connect() as connection, repeated(lambda: connection.execute(statement), 0.001):
        yield


def test_replayed_insert_fills_the_row_that_moved(lake: RunningLake) -> None:
    """B21."""
    with lake.connect() as connection:
        connection.execute("alter table counted alter column n type bigint")
        connection.execute(f"insert into counted values (500, {LARGE}, repeat('moved', 2000))")
        connection.execute("update counted set id = 501, n = 7 where id = 500")
    lake.eventually(
        lambda: lake.sql("select body from counted_current where id = 501") == [[None]], 90
    )
    lake.eventually(lambda: table_of(lake, "counted")["quarantined"] == 1)
    declare(lake, (COUNTED + VISITS).replace("n: int,", "n: bigint,"))
    lake.run("replay")
    moved = [["moved" * 2000]]
    lake.eventually(lambda: lake.sql("select body from counted_current where id = 501") == moved)
    assert lake.sql("select body from counted where id = 501 and not cdc_deleted") == moved
    lake.assert_equal()
    lake.run("verify", "--deep")


def test_a_rejoining_table_has_its_new_values_after_up(lake: RunningLake) -> None:
    """Known issue (a): a row changed while the table was away, and again while it was read."""
    widened = COUNTED.replace("n: int,", "n: bigint,")
    declare(lake, widened)
    with lake.connect() as connection:
        connection.execute("update visits set body = repeat('second', 2000) where id = 50")
    with updating(lake, "update visits set page = page where id = 50"):
        declare(lake, widened + VISITS)
        lake.eventually(lambda: table_of(lake, "visits")["last_error"] is not None, 120)
    assert "`cdclake resync visits`" in table_of(lake, "visits")["last_error"]
    query = "select count(*) from visits_current where id = 50 and body like 'first%'"
    assert lake.sql(query) == [[1]]

    # Connect tells only after its next commit of offsets that the connector has read the table.
    lake.eventually(lambda: lake.run("up") and table_of(lake, "visits")["last_error"] is None, 240)
    lake.assert_equal()
