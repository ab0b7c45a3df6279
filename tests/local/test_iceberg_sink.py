"""The Iceberg sink on a real lake, killed in its commits, compared with the changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.iceberg_sink import APPENDED, WRITTEN, Kill, measure
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

FILMS = """\
version: 1
name: films
source: {database: postgres}
tables:
  public.film: {key: [id], columns: COLUMNS}
  public.whole: {key: [id], replica_identity: full, columns: COLUMNS}
connectors:
  sink:
    plugin: iceberg-sink
    tables: [public.film, public.whole]
    settings: {iceberg.control.commit.interval-ms: 2000}
"""
COLUMNS = '{id: int, title: text, rate: "numeric(4,2)", seen: timestamptz, shown: timestamp}'
FILM_TABLES = """
create table film (id int primary key, title text not null, rate numeric(4,2) not null default 4.99,
  seen timestamptz not null, shown timestamp not null);
create table whole (like film including all);
alter table whole replica identity full;
insert into film select i, 'one', 2.5, '2024-01-01 00:00Z', '1970-01-02'
  from unnest('{1, 5}'::int[]) i;
insert into whole select * from film;
"""
FILM_CHANGES = """
update film set id = 6 where id = 5;
delete from film where id = 1;
update whole set id = 6 where id = 5;
delete from whole where id = 1;
"""
FILM: list[object] = [
    "one",
    "2.50",
    "2024-01-01T00:00:00.000000Z",
    86_400_000_000,
]  # as the sink writes it


def test_a_sink_killed_in_its_commits_lacks_only_truncates(tmp_path: Path) -> None:
    kills = (Kill(WRITTEN, is_first=True), Kill(WRITTEN, 40), Kill(APPENDED))
    found = measure(tmp_path, "earliest", kills)
    assert found["state"] == "running"
    assert found["missing"] == {"t": 1}
    assert (found["committed_twice"], found["different_values"]) == (0, 0)
    assert found["unexplained_rows"] == 0
    # What the changelog has and the sink does not tell: sent again, not sent, too large.
    assert found["resent_rows"] > 0
    assert found["placeholders"] >= found["unsent_values"] > 0
    assert (found["oversized_rows"], found["oversized_quarantined"]) == (0, 1)


def test_the_sinks_default_loses_an_interrupted_first_commit(tmp_path: Path) -> None:
    """The reason for a setting of ours: this fails when Iceberg no longer needs it."""
    found = measure(tmp_path, "latest", (Kill(WRITTEN, is_first=True),))
    assert found["missing"]["r"] == 200


def test_deletes_have_only_the_values_that_the_source_sent(tmp_path: Path) -> None:
    """Debezium invents the others, where a column is NOT NULL."""
    (tmp_path / "films.yaml").write_text(FILMS.replace("COLUMNS", COLUMNS))
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute(FILM_TABLES)
        lake.run("up", str(tmp_path / "films.yaml"))
        with lake.connect() as connection:
            connection.execute(FILM_CHANGES)
        lake.assert_equal()
        lake.eventually(lambda: [_rows(lake, "film"), _rows(lake, "whole")] == [5, 5], 60)
        values: dict[str, list[object]] = {"film": [None] * 4, "whole": FILM}
        for table, deleted in values.items():
            rows = lake.sql(
                f"select id, _cdc.op, title, rate, seen, shown from {table}_sink order by 1, 2"
            )
            assert rows == [
                [1, "D", *deleted],
                [1, "I", *FILM],
                [5, "D", *deleted],  # its key was changed
                [5, "I", *FILM],
                [6, "I", *FILM],
            ]


def _rows(lake: RunningLake, table: str) -> int:
    [[count]] = lake.sql(f"select count(*) from {table}_sink")
    return int(count)
