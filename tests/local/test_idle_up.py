"""A lake in daily use: an idle `up`, `status` in every condition, remedies that work."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.local.running import LONGEST_COMMAND_S, PROJECT, RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200)]

MANY = 60_000
TABLES = """
create table fees (id int primary key, fee money, note text);
create table plain (id int primary key, v text);
create table many (id int primary key, v text);
insert into fees select i, i::numeric::money, 'n' from generate_series(1, 50) i;
insert into plain select i, 'v' from generate_series(1, 50) i;
"""
FEES = "  public.fees: {key: [id], columns: {id: integer, fee: %s, note: text}}\n"
PLAIN = "  public.plain: {key: [id], columns: {id: integer, v: text}}\n"
MANY_TABLE = "  public.many: {key: [id], columns: {id: integer, v: text}}\n"


def pipeline(*tables: str, name: str = "daily") -> str:
    return (
        f"version: 1\nname: {name}\nsource: {{database: {name}}}\nlake: {{database: {name}}}\n"
        f"tables:\n{''.join(tables)}"
    )


class Daily:
    """The lake, and the file that it streams."""

    def __init__(self, lake: RunningLake, file: Path) -> None:
        self.lake, self.file = lake, file

    def up(self, *words: str, **environment: str) -> dict[str, Any]:
        return self.lake.run("up", str(self.file), *words, expect=0, **environment)

    def table(self, name: str) -> dict[str, Any]:
        tables = self.lake.run("status", expect=None)["tables"]
        found: dict[str, Any] = next(table for table in tables if table["table"] == name)
        return found

    def pids(self) -> dict[str, int]:
        parts = self.lake.run("status", expect=None)["components"]
        return {part["name"]: part["pid"] for part in parts}

    def text(self, *words: str) -> tuple[int, str]:
        """Exit code and output of a command for people."""
        done = subprocess.run(
            [sys.executable, "-m", "cdclake.cli.main", *words],
            cwd=PROJECT, env={**os.environ, "CDCLAKE_HOME": str(self.lake.home)},
            capture_output=True, text=True, check=False, timeout=LONGEST_COMMAND_S,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def daily(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daily]:
    folder = tmp_path_factory.mktemp("daily")
    file = folder / "daily.yaml"
    file.write_text(pipeline(FEES % "money", PLAIN))
    with lake_in(folder) as lake:
        with lake.connect() as connection:
            connection.execute(TABLES)
        lake.run("up", str(file))
        yield Daily(lake, file)


def test_up_from_another_shell_changes_nothing(daily: Daily, tmp_path: Path) -> None:
    before = daily.pids()
    ended: list[BaseException] = []

    def sleep() -> None:
        try:
            with psycopg.connect(**daily.lake.dsn) as session:
                session.execute("select pg_sleep(30)")
        except psycopg.Error as error:
            ended.append(error)

    user = threading.Thread(target=sleep)
    user.start()
    time.sleep(1)
    shell = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    answer = daily.up(**shell, VIRTUAL_ENV=str(tmp_path))
    assert daily.pids() == before
    user.join()
    assert ended == []
    assert answer["did"] == []
    code, said = daily.text("up")
    assert code == 0 and said.endswith("\nnothing to do: everything runs\n"), said


def test_status_answers_while_connect_restarts(daily: Daily) -> None:
    daily.lake.kill("connect")
    healed = threading.Thread(target=daily.up)
    healed.start()
    codes = set()
    while healed.is_alive():
        code, said = daily.text("status")
        assert "unexpected error" not in said and "None" not in said, said
        codes.add(code)
    healed.join()
    assert codes <= {0, 1, 4}
    assert daily.lake.run("status", expect=0)["health"] == "healthy"


def test_status_names_the_remedy_of_a_dead_part(daily: Daily) -> None:
    daily.lake.kill("kafka")
    daily.lake.eventually(lambda: not daily.lake.is_running("kafka"))
    code, said = daily.text("status")
    assert code == 4 and "cdclake up" in said and "None" not in said, said
    daily.lake.kill("aws")
    daily.lake.eventually(lambda: not daily.lake.is_running("aws"))
    code, said = daily.text("status")
    assert code == 4 and "cdclake up" in said and "None" not in said, said
    did = daily.up()["did"]
    assert any(line.startswith("started kafka") for line in did), did
    assert daily.text("status")[0] == 0


def test_the_remedy_for_a_changed_type_works(daily: Daily) -> None:
    with daily.lake.connect() as connection:
        connection.execute("alter table fees alter fee type numeric(12,2) using fee::numeric")
    [change] = daily.table("fees")["source_changes"]
    written = re.findall(r"`(fee: numeric\(12,2\))`", change["remedy"])
    assert written and "remove" in change["remedy"], change
    daily.file.write_text(pipeline(FEES.replace("fee: %s, ", ""), PLAIN))
    daily.up()
    daily.file.write_text(pipeline(FEES % "'numeric(12,2)'", PLAIN))
    daily.up("--wait", "rows")
    tables = daily.lake.assert_equal()
    assert tables["fees"]["source_rows"] == 50


def test_up_leaves_a_paused_lake_paused(daily: Daily) -> None:
    daily.lake.run("pause")
    answer = daily.up()
    assert answer["paused"] is True
    assert not daily.lake.is_running("stream")
    code, said = daily.text("up")
    assert code == 0 and "cdclake resume" in said
    daily.lake.run("resume")
    daily.lake.assert_equal()


def test_a_joining_table_is_loading_until_its_rows_are_in(daily: Daily) -> None:
    with daily.lake.connect() as connection:
        connection.execute(
            "insert into many select i, repeat('x', 50) from generate_series(1, %s) i", [MANY]
        )
        connection.execute("analyze many")
    daily.file.write_text(pipeline(FEES % "'numeric(12,2)'", PLAIN, MANY_TABLE))
    daily.lake.run("pause")  # the connector reads the rows, and none reaches the lake
    daily.up()
    table = daily.table("many")
    assert table["state"] == "loading", table
    assert table["loading"] == {"phase": "reading", "rows": 0, "estimated_rows": MANY}
    assert f"loading: 0 of about {MANY:,} rows" in daily.text("status")[1]
    assert daily.table("plain")["state"] == "waiting"
    daily.lake.run("resume")
    daily.lake.eventually(lambda: daily.table("many")["state"] == "streaming", 200)
    assert daily.table("many")["live_rows"] == MANY


def test_up_can_wait_for_the_rows(daily: Daily) -> None:
    with daily.lake.connect() as connection:
        connection.execute("create table more (like many including all)")
        connection.execute("insert into more select * from many")
    more = MANY_TABLE.replace("many", "more")
    daily.file.write_text(pipeline(FEES % "'numeric(12,2)'", PLAIN, MANY_TABLE, more))
    daily.up("--wait", "rows")
    assert daily.lake.sql("select count(*) from more_current") == [[MANY]]


def test_a_second_pipeline_is_sent_to_another_home(daily: Daily, tmp_path: Path) -> None:
    other = tmp_path / "second.yaml"
    other.write_text(pipeline(PLAIN, name="second"))
    error = daily.lake.run("up", str(other), expect=2)["error"]
    assert "CDCLAKE_HOME=" in error["remedy"], error
