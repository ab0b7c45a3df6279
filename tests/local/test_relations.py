"""Relations of the source that change in ways that no event tells the lake."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

CREATED = """
create table big (id bigint primary key, v text);
create table rewritten (id bigint primary key, n int not null);
create table parts (id bigint primary key, n int) partition by range (id);
create table parts_1 partition of parts for values from (1) to (1001);
create table parts_2 partition of parts for values from (1001) to (2001);
create table again (id bigint primary key, n int);
create table renamed (id bigint primary key, n int);
create table moved (id bigint primary key, n int not null);
create type mood as enum ('sad', 'ok');
create domain humour as mood;
create table moods (id bigint primary key, m humour, others mood[]);
create table by_mood (m mood primary key, n int);
insert into big select i, repeat('long ', 40) from generate_series(1, 400000) i;
insert into rewritten select i, i from generate_series(1, 500) i;
insert into parts select i, i from generate_series(901, 1100) i;
insert into again select i, i from generate_series(1, 10) i;
insert into renamed select i, i from generate_series(1, 10) i;
insert into moved select i, i from generate_series(1, 10) i;
insert into moods select i, 'sad', '{sad,ok}' from generate_series(1, 20) i;
insert into by_mood values ('sad', 1), ('ok', 2);
"""
TABLES = {
    "big": "v: text", "rewritten": "n: int", "parts": "n: int", "again": "n: int",
    "renamed": "n: int", "moved": "n: int", "moods": "m: enum, others: 'enum[]'",
}  # fmt: skip
ENUM_KEY = "  public.by_mood: {key: [m], columns: {m: enum, n: int}}"


def pipeline(folder: Path) -> str:
    lines = ["version: 1", "name: relations", "source: {database: postgres}", "tables:"]
    for table, columns in TABLES.items():
        lines += [f"  public.{table}:", f"    columns: {{id: bigint, {columns}}}", "    key: [id]"]
    lines += ["    replica_identity: full", ENUM_KEY]  # of moods: arrays of an enum need it
    file = folder / "relations.yaml"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def rewrite_during_snapshot(lake: RunningLake, altered: list[float]) -> None:
    """Rewrite a table between the connector's snapshot and its SELECT of the table."""
    reading = "select from pg_stat_activity where state = 'active' and query like '%from%big%'"
    with lake.connect() as connection:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            named = f"{reading} and usename = 'cdclake_relations'"
            if connection.execute(named.replace("like", "ilike")).fetchone() is not None:
                connection.execute("alter table rewritten alter n type int using n + 0")
                altered.append(time.monotonic())
                return
            time.sleep(0.005)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("relations")
    with lake_in(folder) as lake:
        with lake.connect() as connection:
            connection.execute(CREATED)
        altered: list[float] = []
        rewriter = threading.Thread(target=rewrite_during_snapshot, args=(lake, altered))
        rewriter.start()
        lake.run("up", pipeline(folder))
        rewriter.join()
        assert altered, "the connector's first snapshot was not seen"
        yield lake


def run(lake: RunningLake, *statements: str) -> None:
    with lake.connect() as connection:
        for statement in statements:
            connection.execute(statement)


def found(lake: RunningLake, table: str) -> dict[str, dict[str, Any]]:
    """What `status` says about the table's relation, by kind."""
    tables = lake.run("status")["tables"]
    own = next(each for each in tables if each["table"] == table)
    return {change["kind"]: change for change in own["relation_changes"]}


def count(lake: RunningLake, table: str) -> int:
    return int(lake.sql(f"select count(*) from {table}_current")[0][0])


def test_a_table_rewritten_during_the_first_snapshot_is_read_again(lake: RunningLake) -> None:
    lake.eventually(lambda: count(lake, "rewritten") == 500, 90)
    assert lake.run("status")["slot"]["failover"] is True
    assert found(lake, "rewritten") == {}
    lake.assert_equal()


def test_attached_partitions_are_reported_and_read(lake: RunningLake) -> None:
    run(
        lake,
        "create table parts_3 partition of parts for values from (2001) to (3001)",
        "insert into parts select i, i from generate_series(2001, 2010) i",
    )
    assert found(lake, "parts") == {}
    run(
        lake,
        "create table stray (like parts including all)",
        "insert into stray select i, i from generate_series(5001, 5100) i",
        "alter table parts attach partition stray for values from (5001) to (6001)",
        "begin; create table at_once (like parts including all);"
        " insert into at_once select i, i from generate_series(7001, 7050) i;"
        " alter table parts attach partition at_once for values from (7001) to (8001); commit",
    )
    change = found(lake, "parts")["attached"]
    assert "public.at_once, public.stray was attached" in change["message"]
    assert "cdclake up" in change["remedy"]
    answer = lake.run("up")
    assert [(c["source"], c["kind"], c["did"]) for c in answer["relation_changes"]] == [
        ("public.parts", "attached", "resync")
    ]
    lake.eventually(lambda: count(lake, "parts") == 200 + 10 + 100 + 50, 90)
    assert found(lake, "parts") == {}


def test_a_detached_partitions_rows_leave_the_lake(lake: RunningLake) -> None:
    before = count(lake, "parts")
    run(lake, "alter table parts detach partition parts_2")
    assert "public.parts_2" in found(lake, "parts")["detached"]["message"]
    lake.run("up")
    lake.eventually(lambda: count(lake, "parts") == before - 100, 90)
    assert found(lake, "parts") == {}


def test_rows_that_vanish_before_the_stream_reads_them_leave_the_lake(lake: RunningLake) -> None:
    lake.run("pause")
    run(
        lake,
        "insert into parts select i, i from generate_series(1, 20) i",
        "alter table parts detach partition parts_1",
    )
    lake.run("up")
    lake.run("resume")
    gone = "select count(*) from parts_current where id < 1001"
    lake.eventually(lambda: lake.sql(gone) == [[0]], 240)
    assert lake.sql("select count(*) from parts_changes where id < 21 and cdc_op = 'c'") == [[20]]
    lake.assert_equal("--table", "parts")
    assert found(lake, "parts") == {}


def test_a_table_created_again_is_published_and_read_again(lake: RunningLake) -> None:
    run(
        lake,
        "drop table again",
        "create table again (id bigint primary key, n int)",
        "insert into again select i, -i from generate_series(5, 20) i",
    )
    assert "recreated" in found(lake, "again")
    lake.run("up")
    lake.eventually(
        lambda: lake.sql("select count(*), max(n) from again_current") == [[16, -5]], 90
    )
    run(lake, "insert into again values (21, 21)")
    lake.assert_equal("--table", "again")


def test_a_column_added_again_is_reported_and_read(lake: RunningLake) -> None:
    run(
        lake,
        "alter table rewritten drop column n",
        "alter table rewritten add column n int not null default 7",
        "update rewritten set n = 8 where id = 1",
    )
    old = "select count(*) from rewritten_current where n not in (7, 8)"
    stays = [[500 - 3]]  # 7 and 8 were values before
    lake.eventually(lambda: lake.sql(old) == stays, 60)
    assert "column n was dropped and added again" in found(lake, "rewritten")["replaced"]["message"]
    [change] = lake.run("up")["relation_changes"]
    assert (change["kind"], change["did"]) == ("replaced", "resync")
    lake.eventually(lambda: lake.sql(old) == [[0]], 90)
    assert found(lake, "rewritten") == {}
    lake.assert_equal("--table", "rewritten")


def test_a_renamed_label_is_reported_and_read_again(lake: RunningLake) -> None:
    """The rows have no event. Of a key, an event has the new label alone."""
    run(
        lake,
        "alter type mood rename value 'sad' to 'blue'",
        "update moods set id = 100 where id = 1",
        "update by_mood set n = 10 where m = 'blue'",
    )
    keys = "select m, n from by_mood_current order by m, n"
    lake.eventually(lambda: lake.sql(keys) == [["blue", 10], ["ok", 2], ["sad", 1]], 60)
    old = "select count(*) from moods_current where m = 'sad' and others = '[\"sad\",\"ok\"]'"
    lake.eventually(lambda: lake.sql(old) == [[19]], 60)
    for table in ("moods", "by_mood"):
        assert "('sad' to 'blue')" in found(lake, table)["relabelled"]["message"]
    answer = lake.run("up")
    assert {(c["source"], c["kind"], c["did"]) for c in answer["relation_changes"]} == {
        ("public.moods", "relabelled", "resync"),
        ("public.by_mood", "relabelled", "resync"),
    }
    lake.eventually(lambda: lake.sql(keys) == [["blue", 10], ["ok", 2]], 90)
    lake.eventually(lambda: lake.sql(old) == [[0]], 90)
    assert found(lake, "moods") == found(lake, "by_mood") == {}
    lake.assert_equal("--table", "moods")
    lake.assert_equal("--table", "by_mood")
    run(lake, "alter type mood add value 'new'", "insert into by_mood values ('new', 3)")
    lake.eventually(lambda: count(lake, "by_mood") == 3)
    assert found(lake, "by_mood") == {}  # `status` records the label
    run(lake, "alter type mood rename value 'new' to 'fresh'")
    assert "('new' to 'fresh')" in found(lake, "by_mood")["relabelled"]["message"]
    lake.run("up")
    renamed = [["blue", 10], ["fresh", 3], ["ok", 2]]
    lake.eventually(lambda: lake.sql(keys) == renamed, 90)
    assert found(lake, "by_mood") == {}


def test_a_renamed_table_neither_hides_nor_stops_the_others(lake: RunningLake) -> None:
    run(lake, "alter table renamed rename to elsewhere")
    change = found(lake, "renamed")["renamed"]
    assert "renamed to public.elsewhere" in change["message"]
    assert 'ALTER TABLE "public"."elsewhere" RENAME TO "renamed";' in change["remedy"]
    report = lake.run("verify", expect=1)
    problems = {each["table"]: each["error"] for each in report["tables"] if each["error"]}
    assert list(problems) == ["renamed"]
    assert "no table public.renamed" in problems["renamed"]
    assert sum(each["source_rows"] for each in report["tables"]) > 400_000
    lake.kill("stream")
    lake.run("up")
    run(lake, "insert into moved values (11, 11)")
    lake.eventually(lambda: count(lake, "moved") == 11)
    run(lake, "drop table elsewhere", "create table lookalike (id bigint primary key, n int)")
    assert "public.lookalike has the same columns" in found(lake, "renamed")["missing"]["message"]
    run(lake, "alter table lookalike rename to renamed", "insert into renamed values (1, 1)")
    lake.run("up")
    lake.eventually(lambda: lake.sql("select id from renamed_current") == [[1]], 90)


def test_a_moved_key_is_reported_and_refused_with_its_remedy(lake: RunningLake) -> None:
    run(lake, "alter table moved drop constraint moved_pkey, add primary key (n)")
    change = found(lake, "moved")["key"]
    assert "its primary key moved from (id) to (n)" in change["message"]
    assert "cdclake resync moved" in change["remedy"]
    refused = lake.run("up", expect=2)
    assert "does not contain the key (id)" in json_text(refused)
    run(lake, "alter table moved drop constraint moved_pkey, add primary key (id)")
    lake.run("up")
    lake.assert_equal()


def json_text(answer: dict[str, Any]) -> str:
    return str(answer)
