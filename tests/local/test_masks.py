"""Masked large values on the real lake, and a mask that comes after the clear text.

Before `MaskConverter`, an update that left such a column alone stored the hash of Debezium's
placeholder (seen: 989079ed..., the same for every row), and `mask: hash` left citext unmasked.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

CREATED = """
create extension if not exists citext;
create table people (id bigint primary key, v int, letter text, code varchar(20),
  name char(100) not null, email citext, note text, remark citext, phone varchar(30));
alter table people set (toast_tuple_target = 128);
update pg_attribute set attstorage = 'e' where attrelid = 'people'::regclass and attlen = -1;
insert into people select i, 1, repeat('letter ' || i, 400), repeat('😀', 19) || i % 10,
  repeat('name ' || i, 9), repeat('Email ' || i, 9), repeat('Note ' || i, 90),
  repeat('Remark ' || i, 9), null
  from generate_series(1, 200) i;
create table delivered (like people including all);
alter table delivered set (toast_tuple_target = 128);
update pg_attribute set attstorage = 'e' where attrelid = 'delivered'::regclass and attlen = -1;
insert into delivered select * from people;
"""
CHANGED = """
update {table} set v = v + 1;
update {table} set v = null, letter = 'short' || id where id % 10 = 1;
update {table} set id = id + 1000 where id % 10 = 2;
update {table} set email = null, remark = 'Short' where id % 10 = 3;
update {table} set v = 7 where id % 5 = 3;
update {table} set id = id + 1000 where id % 10 = 2;
delete from {table} where id % 10 = 4;
"""
HASHED = "{type: %s, mask: hash}"
MASKED = {
    "letter": HASHED % "text", "code": HASHED % "'varchar(20)'", "name": HASHED % "'char(100)'",
    "email": HASHED % "citext", "note": "{type: text, mask: truncate(4)}",
    "remark": "{type: citext, mask: truncate(4)}",
}  # fmt: skip
FIREHOSE = """\
schedules: {apply: rate(1 minute)}
firehose: {buffer: {seconds: 2, mib: 64}, function: {seconds: 1, mib: 1}}
"""


def pipeline(folder: Path, phone: str | None, *, bulk: bool = False) -> str:
    """A pipeline file of masked columns; Firehose delivers the second table, unless `bulk`."""
    snapshot = ", snapshot: {mode: bulk}" if bulk else ""
    columns = {"id": "bigint", "v": "int", **MASKED}
    if bulk:  # the load cuts no values
        columns |= {"note": HASHED % "text", "remark": HASHED % "citext"}
    lines = ["version: 1", "name: masks", f"source: {{database: postgres{snapshot}}}"]
    lines += [] if bulk else FIREHOSE.splitlines()
    lines.append("tables:")
    for table in ("people", "delivered"):
        lines += [f"  public.{table}:", "    key: [id]"]
        lines += ["    delivery: firehose"] if table == "delivered" and not bulk else []
        lines += ["    columns:", *(f"      {name}: {kind}" for name, kind in columns.items())]
        lines += [f"      phone: {phone}"] if phone is not None and table == "people" else []
    file = folder / f"masks-{len(list(folder.glob('*.yaml')))}.yaml"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def assert_masked(lake: RunningLake) -> None:
    """Lake and source are equal, and hashes of different rows differ."""
    lake.assert_equal()
    for table in ("people", "delivered"):
        [[rows, letters, longest, codes, name, email]] = lake.sql(
            "select count(*), count(distinct letter), max(length(letter)), max(length(code)),"
            f" max(length(name)), max(length(email)) from {table}_current"
        )
        assert rows == letters > 100
        assert (longest, codes, name, email) == (64, 20, 64, 64)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("masks")
    with lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        running.run("up", pipeline(folder, "varchar(30)"))
        yield running


def test_an_update_keeps_the_masked_values_that_it_does_not_send(lake: RunningLake) -> None:
    assert_masked(lake)
    with lake.connect() as connection:
        for table in ("people", "delivered"):
            connection.execute(CHANGED.format(table=table))
    assert_masked(lake)
    [[unsent]] = lake.sql("select count(*) from people_changes where len(cdc_unavailable) > 0")
    assert unsent > 200


def test_jobs_run_on_their_schedules(lake: RunningLake) -> None:
    with lake.connect() as connection:
        rows = connection.execute("update delivered set v = 4711").rowcount
    assert rows > 100
    # A minute until the next run, and a Spark session.
    lake.eventually(
        lambda: lake.sql("select count(*) from delivered where v = 4711") == [[rows]], seconds=150
    )
    status = lake.run("status")
    jobs = {job["job"]: job for job in status["schedules"]}
    assert {name: job["schedule"] for name, job in jobs.items()} == {
        "apply_changes": "rate(1 minute)",
        "maintain_tables": "cron(0 3 * * ? *)",
    }
    assert jobs["maintain_tables"]["last_run"] is None
    assert not any("scheduled job" in line for line in status["attention"])
    # As the supervisor would start it, had the file a schedule for it.
    words = ("-m", "cdclake.local.scheduled_job", "--home", str(lake.home))
    ended = subprocess.run(
        [sys.executable, *words, "--job", "verify_tables"], capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert b"people: equal" in ended.stdout


def test_resync_and_rebuild_keep_them(lake: RunningLake) -> None:
    lake.run("resync", "people")
    assert_masked(lake)
    with lake.connect() as connection:
        connection.execute("update people set v = 9")
    lake.assert_equal()
    lake.run("job", "apply_changes")
    lake.run("job", "rebuild_tables")
    assert_masked(lake)


def test_a_mask_is_refused_over_clear_text_until_all_is_erased(
    lake: RunningLake, tmp_path: Path
) -> None:
    with lake.connect() as connection:
        connection.execute("update people set phone = '555-' || id")
    lake.assert_equal()
    assert lake.sql("select count(*) from people_changes where phone like '555-%'") != [[0]]
    masked = pipeline(tmp_path, HASHED % "'varchar(30)'")
    refused = lake.run("up", masked, expect=2)["error"]
    assert "column 'phone' is now masked with `hash`" in refused["message"]
    lake.run("up", pipeline(tmp_path, None))
    refused = lake.run("up", masked, expect=2)["error"]
    assert "column 'phone' is now masked with `hash`" in refused["message"]
    # The commands that the remedy names, as it names them.
    assert (
        "`cdclake down --purge`" in refused["remedy"] and "`cdclake up FILE`" in refused["remedy"]
    )
    lake.run("down", "--purge")
    lake.run("up", masked)
    assert_masked(lake)
    assert lake.sql("select distinct length(phone) from people_changes") == [[30]]
    columns = lake.run("sql", "select * from people_changes limit 1")["columns"]
    assert not [column for column in columns if column["name"].startswith("cdc_dropped_")]


def test_a_bulk_load_masks_as_the_connector_does(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute(CREATED)
        lake.run("up", pipeline(tmp_path, None, bulk=True))
        assert_masked(lake)
        with lake.connect() as connection:
            for table in ("people", "delivered"):
                connection.execute(CHANGED.format(table=table))
        assert_masked(lake)
        lake.run("resync", "people")
        assert_masked(lake)
