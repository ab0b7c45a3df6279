"""MoMA's artists and artworks from PostgreSQL into Hudi copies, and their story to its end.

Artists are merge-on-read, partitioned by nationality, with soft deletes: five updates and a delete
of one artist are read again at their instants. Artworks are copy-on-write, with hard deletes.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

import psycopg
import pytest

from cdclake.local.lake.lake import LocalLake, aws_environment, open_lake
from cdclake.local.process.home import Home
from tests.given_folders import given_folder, needs_files
from tests.local.running import RunningLake, lake_in
from tests.spark.hudi_jvm import hudi_jvm, needs_hudi, rust_rows, spark_rows

__all__ = ["hudi_jvm"]
pytestmark = [
    pytest.mark.local,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    needs_hudi,
    needs_files("moma"),
]
PIPELINE = """\
version: 1
name: moma
source: {database: moma}
tables:
  public.artists:
    key: [artist_id]
    columns: {artist_id: bigint, name: text, bio: text, nationality: text}
    replica_identity: full
    deletes: soft
    publish:
      - hudi: {type: mor, partition_by: nationality}
  public.artworks:
    key: [object_id]
    columns: {object_id: bigint, artist_id: bigint, title: text, date: text, department: text}
    publish:
      - hudi: {partition_by: department, schedule: rate(15 minutes)}
"""
ARTIST = ("artist_id", "name", "nationality")
ARTWORK = ("object_id", "artist_id", "title", "date", "department")
UPDATES = (  # of one artist; the third and the fifth move the row to another partition
    "update artists set name = 'A' where artist_id = {}",
    "update artists set bio = 'b' where artist_id = {}",
    "update artists set nationality = 'Peruvian' where artist_id = {}",
    "update artists set name = 'B' where artist_id = {}",
    "update artists set nationality = 'Kenyan' where artist_id = {}",
)


def rows_of(name: str, columns: list[str]) -> Iterator[list[str | None]]:
    with gzip.open(given_folder("moma") / f"{name}.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            yield [row[column] or None for column in columns]


def nationality(bio: str | None) -> str | None:
    """What a biography such as `(Swedish, born 1940)` begins with."""
    found = re.match(r"\(([A-Z][^,)0-9(]*)", bio or "")
    return found[1].strip() if found else None


def load(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "create table artists (artist_id bigint primary key, name text, bio text, nationality text)"
    )
    connection.execute(
        "create table artworks (object_id bigint primary key, artist_id bigint, title text,"
        " date text, department text)"
    )
    artists = [
        [*row, nationality(row[2])] for row in rows_of("artists", ["artist_id", "name", "bio"])
    ]
    columns = ["object_id", "artist_id", "title", "date", "department"]
    for name, rows in (("artists", artists), ("artworks", rows_of("artworks", columns))):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        with connection.cursor().copy(f"copy {name} from stdin (format csv)") as copy:
            copy.write(text.getvalue())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("lake")
    file = folder / "moma.yaml"
    file.write_text(PIPELINE)
    with lake_in(folder) as running:
        with running.connect() as connection:
            load(connection)
        running.run("up", str(file))
        yield running


class Copies:
    """The copies of the lake, as hudi-rs and Spark read them from its S3."""

    def __init__(self, running: RunningLake, jvm: Executor) -> None:
        self._lake: LocalLake = open_lake(Home(running.home))
        self._jvm = jvm

    def folder(self, name: str) -> str:
        return f"{self._lake.warehouse_uri}/{self._lake.plan.lake_database}.db/{name}"

    def rust(self, name: str, columns: tuple[str, ...], **read: str) -> list[tuple[Any, ...]]:
        options = {"aws_allow_http": "true"}
        options |= {k.lower(): v for k, v in aws_environment(self._lake.endpoints).items()}
        return sorted(rust_rows(self.folder(name), columns, options, **read), key=repr)

    def spark(self, name: str, columns: tuple[str, ...], **read: str) -> list[tuple[Any, ...]]:
        keys = aws_environment(self._lake.endpoints)
        client = {
            "endpoint": self._lake.s3,
            "path.style.access": "true",
            "access.key": keys["AWS_ACCESS_KEY_ID"],
            "secret.key": keys["AWS_SECRET_ACCESS_KEY"],
        }
        where = self.folder(name).replace("s3://", "s3a://", 1)
        return self._jvm.submit(spark_rows, where, columns, read, client).result()

    def instants(self, name: str) -> list[str]:
        """The completed publications, the oldest first."""
        bucket, _, prefix = self.folder(name).removeprefix("s3://").partition("/")
        pages = self._lake.client("s3").get_paginator("list_objects_v2")
        found = [
            each["Key"].rpartition("/")[2].partition(".")
            for page in pages.paginate(Bucket=bucket, Prefix=f"{prefix}/.hoodie/")
            for each in page["Contents"]
        ]
        return sorted(instant for instant, _, action in found if action == "deltacommit")


def current(lake: RunningLake, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = lake.sql(f"SELECT {', '.join(columns)} FROM {table}_current")
    return sorted(map(tuple, rows), key=repr)


def test_deleted_artworks_leave_the_copy(lake: RunningLake, hudi_jvm: Executor) -> None:
    copies, table = Copies(lake, hudi_jvm), ("--table", "artworks")
    lake.assert_equal(*table)
    assert lake.run("job", "publish_hudi", "--table", "artworks_hudi")["ok"]
    assert copies.rust("artworks_hudi", ARTWORK) == current(lake, "artworks", ARTWORK)
    with lake.connect() as connection:
        connection.execute("delete from artworks where object_id % 1000 = 7")
    lake.assert_equal(*table)
    assert lake.run("job", "publish_hudi", "--table", "artworks_hudi")["ok"]
    expected = current(lake, "artworks", ARTWORK)
    assert copies.rust("artworks_hudi", ARTWORK) == expected
    assert copies.spark("artworks_hudi", ARTWORK) == expected


def test_the_story_of_an_artist_can_be_read_at_each_instant(
    lake: RunningLake, hudi_jvm: Executor
) -> None:
    copies, artist = Copies(lake, hudi_jvm), 26
    lake.assert_equal("--table", "artists")
    assert lake.run("job", "publish_hudi", "--table", "artists_hudi")["ok"]
    assert copies.rust("artists_hudi", ARTIST) == current(lake, "artists", ARTIST)
    [first] = [row for row in copies.rust("artists_hudi", ARTIST) if row[0] == artist]
    for change in (*UPDATES, "delete from artists where artist_id = {}"):
        with lake.connect() as connection:
            connection.execute(change.format(artist))
        lake.assert_equal("--table", "artists")
        assert lake.run("job", "publish_hudi", "--table", "artists_hudi")["ok"]
    story = [
        first, (artist, "A", "Swedish"), (artist, "A", "Swedish"), (artist, "A", "Peruvian"),
        (artist, "B", "Peruvian"), (artist, "B", "Kenyan"), (artist, None, None),
    ]  # fmt: skip
    assert first[2] == "Swedish"
    instants = copies.instants("artists_hudi")
    for read in (
        [copies.rust("artists_hudi", ARTIST, as_of=instant) for instant in instants],
        [copies.spark("artists_hudi", ARTIST, **{"as.of.instant": at}) for at in instants],
    ):
        assert [[row for row in rows if row[0] == artist] for rows in read] == [[r] for r in story]
    live = [row for row in copies.spark("artists_hudi", ARTIST) if row[0] != artist]
    assert live == current(lake, "artists", ARTIST)
