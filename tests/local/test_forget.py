"""`cdclake forget` on a real lake: a thousand rows leave everything, and none comes back."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdclake.jobs.erasure.sought_values import SoughtValue
from cdclake.local.lake.lake import LocalLake
from tests.local.erased_lake import changed_lake_in, erased_of, left_in, opened_lake
from tests.local.repeated_work import repeated
from tests.local.running import RunningLake

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1500)]

ERASED, ROWS = 1000, 1200
CREATED = """
create table people (id bigint primary key, name text, email text, city text, score numeric(5,2),
  note text);
insert into people select i, md5('name' || i), md5('mail' || i) || '@example.org',
  'Springfield', 1.5, case when i % 9 = 0 then repeat(md5('note' || i), 90) end
  from generate_series(1, 1200) i;
create extension citext;
create table rates (rate numeric primary key, v text);
create table members (mail citext primary key, v text);
insert into rates values (1.50, 'rate one and a half'), (15, 'rate fifteen');
insert into members values ('Ada@example.com', 'member Ada'), ('bob@example.com', 'member Bob');
"""
CHANGED = """
update rates set rate = 1.500 where rate = 1.5;
update members set mail = 'ADA@example.com' where mail = 'ada@example.com';
update people set score = 2.5, name = md5('second name' || id) where id % 2 = 0;
update people set score = 'NaN' where id % 100 = 0;
"""
FILE = """
version: 1
name: erased
source: {database: postgres}
stream: {trigger_seconds: 2}
tables:
  public.people:
    key: [id]
    partition_by: [city]
    columns: {id: bigint, name: text, email: text, city: text, score: "numeric(5,2)", note: text}
  public.rates: {key: [rate], columns: {rate: numeric, v: text}}
  public.members: {key: [mail], columns: {mail: citext, v: text}}
derived:
  mails:
    sql: SELECT id, email FROM people_current
    key: [id]
  mails_json:
    sql: SELECT id, email, city FROM people_current
    key: [id]
    format: json
"""
MANIFEST = {
    "type": "record", "name": "manifest_entry", "fields": [{"name": "lower_bounds", "type": {
        "type": "array", "items": {"type": "record", "name": "bound", "fields": [
            {"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]}}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("forget")
    with changed_lake_in(folder, FILE, CREATED, CHANGED) as running:
        yield running


@pytest.fixture
def opened(lake: RunningLake, monkeypatch: pytest.MonkeyPatch) -> LocalLake:
    return opened_lake(lake, monkeypatch)


def texts(lake: RunningLake, first: int, last: int) -> list[SoughtValue]:
    """The texts of these rows, as PostgreSQL computes them; the lake is not asked."""
    with lake.connect() as connection:
        rows = connection.execute(
            "select md5('name' || i), md5('mail' || i) || '@example.org', md5('second name' || i),"
            " md5('note' || i) from generate_series(%s::int, %s::int) i", (first, last),
        ).fetchall()  # fmt: skip
    names = ("name", "email", "name", "note")
    return [SoughtValue(n, text) for row in rows for n, text in zip(names, row, strict=True)]


def erase(lake: RunningLake, *words: str, expect: int = 0) -> dict[str, Any]:
    return lake.run("forget", "people", *words, "--yes", "--grace", "3s", expect=expect)


@pytest.mark.parametrize(
    ("table", "key", "word"), [("rates", "rate", "1.5"), ("members", "mail", "ada@EXAMPLE.com")]
)
def test_equal_keys_leave_in_every_spelling(
    lake: RunningLake, opened: LocalLake, table: str, key: str, word: str
) -> None:
    folder = f"{opened.warehouse_uri}/{opened.plan.lake_database}.db/{table}_old/"
    left = folder.removeprefix(f"s3://{opened.bucket}/") + "data/1.parquet"
    opened.client("s3").put_object(Bucket=opened.bucket, Key=left, Body=b"of an earlier file")
    refused = lake.run("forget", table, word, "--yes", expect=2)
    assert f"still has {word}" in refused["error"]["message"]
    with lake.connect() as connection:
        connection.execute(f"delete from {table} where {key} = '{word}'")
    lake.run("verify", expect=None)
    assert lake.sql(f"select count(distinct {key}) from {table}_changes") == [[3]]
    assert lake.run("trace", table, word)["situation"] == "deleted"
    report = lake.run("forget", table, word, "--yes", "--grace", "3s")
    assert (report["keys"], report["stored"], report["elsewhere"]) == (1, [], [])
    wheres = [each["where"] for each in report["remaining"]]
    undeclared = "whose table the file does not declare"
    assert [w for w in wheres if undeclared in w] == [f"{folder}, {undeclared}"]
    opened.client("s3").delete_object(Bucket=opened.bucket, Key=left)
    assert (erased_of(report, "events")[f"{table}_changes"] or 0) >= 3
    assert lake.sql(f"select count(*) from {table}_changes") == [[1]]
    assert lake.sql(f"select count(*) from {table}") == [[1]]


def plant(opened: LocalLake, text: str) -> dict[str, bytes]:
    """Objects with the text in three forms that its bytes do not show, and in one that does."""
    manifest, parquet = io.BytesIO(), io.BytesIO()
    bound = [{"key": 2, "value": text[:16].encode()}]
    fastavro.writer(manifest, MANIFEST, [{"lower_bounds": bound}], codec="deflate")
    pq.write_table(pa.table({"email": [text]}), parquet, compression="zstd")
    planted = {
        "left/plain.txt": text.encode(),
        "left/lines.json.gz": gzip.compress(b'{"mail": "%s"}' % text.encode()),
        "left/manifest.avro": manifest.getvalue(),
        "left/rows.parquet": parquet.getvalue(),
    }
    for key, content in planted.items():
        opened.client("s3").put_object(Bucket=opened.bucket, Key=key, Body=content)
    return planted


def test_a_row_of_the_source_is_refused(lake: RunningLake) -> None:
    answer = erase(lake, "7", expect=2)
    assert "still has 7" in answer["error"]["message"]
    assert lake.sql("select count(*) from people_current where id = 7") == [[1]]


def test_a_thousand_rows_are_found_nowhere(lake: RunningLake, opened: LocalLake) -> None:
    values = texts(lake, 1, ERASED)
    with lake.connect() as connection:
        connection.execute("delete from people where id <= %s", (ERASED,))
    lake.run("verify", expect=None)
    (lake.home / "logs" / "connect.log").open("a").write(f"cannot read {values[5].text}\n")
    _leave(lake.home / "data" / "spark", values[5].text)
    before = left_in(opened, values)
    parts = {place["part"] for place in before}
    assert {"values of column email", "bound of a manifest", "bytes", "JSON"} <= parts
    earlier = datetime.now(UTC).isoformat()
    keys = lake.home.parent / "keys.txt"
    keys.write_text("".join(f"{number}\n" for number in range(1, ERASED + 1)))
    with repeated(partial(_read, lake)):
        report = erase(lake, "--keys", str(keys))
    assert (report["keys"], report["stored"], report["elsewhere"]) == (ERASED, [], [])
    assert erased_of(report, "rows") == {"people": ERASED}
    assert erased_of(report, "records") == {"cdclake_quarantine": 10}
    assert sorted(erased_of(report, "derived table")) == ["mails", "mails_json"]
    assert report["shared"] == ["city", "score"] and report["redacted_files"] == ["connect.log"]
    assert left_in(opened, values) == []
    kept = left_in(opened, texts(lake, ERASED + 1, ROWS))
    assert any("/people_changes/" in place["where"] for place in kept)
    assert lake.sql("select count(*) from people_current") == [[ROWS - ERASED]]
    assert lake.sql("select count(*) from mails") == [[ROWS - ERASED]]
    then = lake.run("sql", "select count(*) from people_current where id <= 1000",
                    "--as-of", earlier)  # fmt: skip
    assert then["rows"] == [[0]]


def _leave(folder: Path, text: str) -> None:
    """Leave files as killed workers do: of an earlier version's stream, and of a poll."""
    for name in ("blockmgr-1", "poll_tables/blockmgr-2"):
        index = folder / name / "cdclake-key-index"
        index.mkdir(parents=True)
        (index / "1.text").write_text(text)


def _read(lake: RunningLake) -> None:
    [[live]] = lake.sql("select count(*) from people_current")
    assert live == ROWS - ERASED


def test_nothing_brings_an_erased_row_back(lake: RunningLake, opened: LocalLake) -> None:
    lake.run("pause")
    for name in ("checkpoints", "spark"):
        _remove(lake.home / "data" / name)
    lake.run("resume")
    with lake.connect() as connection:
        connection.execute("update people set score = 3 where score = 'NaN'")
    lake.run("replay")
    lake.run("resync", "people")
    lake.run("job", "refresh_derived")
    assert left_in(opened, texts(lake, 1, ERASED)) == []
    with lake.connect() as connection:
        connection.execute("insert into people values (5, 'comes back', 'new@example.org', 'S', 1)")
    lake.run("verify", "--table", "people", expect=None)
    assert lake.sql("select name from people_current where id = 5") == [["comes back"]]
    assert lake.sql("select count(*) from people_changes where id <= 1000") == [[1]]


def _remove(folder: Path) -> None:
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()


def test_each_planted_leftover_fails_the_command(lake: RunningLake, opened: LocalLake) -> None:
    number = ERASED + 1
    mail = next(v.text for v in texts(lake, number, number) if v.column == "email")
    planted = plant(opened, mail)
    with lake.connect() as connection:
        connection.execute("delete from people where id = %s", (number,))
    report = erase(lake, str(number), expect=1)
    found = {place["where"].removeprefix(f"s3://{opened.bucket}/") for place in report["stored"]}
    assert found == planted.keys()
    assert {place["part"] for place in report["stored"]} > {"bytes", "bound of a manifest", "JSON"}
    assert mail not in str(report)
