"""Values that are too large for Kafka stop neither the connector nor any other table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from cdclake.debezium.record_limit import MAX_RECORD_BYTES
from tests.local.running import RunningLake, lake_in
from tests.local.test_connector_again import connect

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

PIPELINE = """\
version: 1
name: pages
source: {database: postgres}
tables:
  public.pages:
    key: [id]
    columns: {id: bigint, title: text, body: text}
  public.other:
    key: [id]
    columns: {id: bigint}
"""
# 20 MB of text whose compressed form is small, as Kafka would have it.
LARGE = "repeat(md5('x'), 20000000 / 32)"
ROW = "SELECT title, length(body) FROM pages_current WHERE id = {}"


class Pages:
    """The lake with its pipeline file, and the source's session."""

    def __init__(self, lake: RunningLake, file: Path, source: Connection[Any]) -> None:
        self.lake, self.file, self._source = lake, file, source
        self._others = 0

    def execute(self, statement: str) -> None:
        self._source.execute(statement)

    def assert_others_arrive(self) -> None:
        """A row of the other table, written last, gets into the lake; the connector runs."""
        self._others += 1
        self.execute(f"INSERT INTO other VALUES ({self._others})")
        found = f"SELECT count(*) FROM other_current WHERE id = {self._others}"
        self.lake.eventually(lambda: self.lake.sql(found) == [[1]], seconds=120)
        status = connect(self.lake, "GET", "/connectors/pages-source/status")
        assert [task["state"] for task in status["tasks"]] == ["RUNNING"], status

    def status(self) -> dict[str, Any]:
        tables = self.lake.run("status")["tables"]
        return next(table for table in tables if table["table"] == "pages")

    def row(self, number: int) -> list[list[Any]]:
        return self.lake.sql(ROW.format(number))

    def assert_wal_is_released(self) -> None:
        """The slot does not retain the large value's WAL."""
        self.lake.eventually(
            lambda: self.lake.run("status")["slot"]["wal_bytes"] < MAX_RECORD_BYTES, seconds=60
        )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("pages")
    file = folder / "pages.yaml"
    file.write_text(PIPELINE)
    with lake_in(folder) as lake, lake.connect() as source:
        source.execute("CREATE TABLE pages (id bigint PRIMARY KEY, title text, body text)")
        source.execute("CREATE TABLE other (id bigint PRIMARY KEY)")
        source.execute("INSERT INTO pages SELECT g, 'old', 'small' FROM generate_series(1, 5) g")
        lake.run("up", str(file))
        yield Pages(lake, file, source)


def test_an_update_too_large_for_kafka_is_named_and_repaired_by_a_smaller_one(pages: Pages) -> None:
    pages.assert_others_arrive()
    pages.execute(f"UPDATE pages SET title = 'new', body = {LARGE} WHERE id = 1")
    pages.assert_others_arrive()
    pages.assert_wal_is_released()
    told = pages.status()
    assert (told["state"], told["quarantined"]) == ("streaming", 1)
    for words in ("OVERSIZED_RECORD: public.pages, key id=1,", "column body has 200", "exclude"):
        assert words in told["last_error"], told
    assert pages.row(1) == [["old", 5]]

    # Still too large: the resync says so, and does not take the row for one that is gone.
    failed = pages.lake.run("resync", "pages", expect=None)
    assert "key id=1," in json.dumps(failed), failed
    assert pages.row(1) == [["old", 5]]
    pages.assert_others_arrive()

    pages.execute("UPDATE pages SET body = 'short' WHERE id = 1")
    pages.lake.run("resync", "pages")
    assert pages.row(1) == [["new", 5]]
    told = pages.status()
    assert (told["quarantined"], told["last_error"]) == (0, None)
    pages.lake.assert_equal()


def test_a_row_too_large_for_kafka_comes_when_its_column_is_excluded(pages: Pages) -> None:
    pages.execute(f"INSERT INTO pages VALUES (7, 'seven', {LARGE})")
    pages.assert_others_arrive()
    assert pages.row(7) == []
    assert "key id=7," in pages.status()["last_error"]
    excluding = PIPELINE.replace("title: text, body: text", "title: text, body: {exclude: true}")
    pages.file.write_text(excluding)
    pages.lake.run("up", str(pages.file))
    pages.lake.run("resync", "pages")
    assert pages.lake.sql("SELECT title FROM pages_current WHERE id = 7") == [["seven"]]
    assert pages.status()["quarantined"] == 0
    pages.lake.assert_equal()
