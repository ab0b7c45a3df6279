"""`verify --reader spark` on a lake, and the count of rows that Athena would show incomplete."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

FILE = """\
version: 1
name: notes
source: {database: postgres}
tables:
  public.notes:
    key: [id]
    apply: scheduled
    columns: {id: bigint, n: integer, body: text}
"""
CREATED = """
CREATE TABLE notes (id bigint PRIMARY KEY, n integer, body text);
INSERT INTO notes SELECT i, i, (SELECT string_agg(md5(random()::text), '')
  FROM generate_series(1, 200) WHERE i > 0) FROM generate_series(1, 50) AS i;
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("reader")
    (folder / "notes.yaml").write_text(FILE)
    with lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        running.run("up", str(folder / "notes.yaml"))
        running.run("verify")
        running.run("job", "apply_changes")
        yield running


def incomplete(lake: RunningLake) -> int:
    [table] = lake.run("status")["tables"]
    return int(table["incomplete"])


def test_rows_count_as_incomplete_until_they_are_applied(lake: RunningLake) -> None:
    assert incomplete(lake) == 0
    with lake.connect() as connection:
        connection.execute("UPDATE notes SET id = id + 1000 WHERE id IN (3, 4)")
        connection.execute("UPDATE notes SET id = 2000, body = 'sent' WHERE id = 5")
    assert lake.run("verify")["ok"]
    assert incomplete(lake) == 2
    report = lake.run("verify", "--reader", "spark")
    [table] = report["tables"]
    assert (report["ok"], report["reader"]) == (True, "spark")
    assert (table["source_rows"], table["lake_rows"], table["incomplete"]) == (50, 50, 0)
    lake.run("job", "apply_changes")
    assert incomplete(lake) == 0
