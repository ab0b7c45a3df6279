"""Declared connectors on a real lake: they run, fail alone, and leave when the file drops them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.local.recording_sink import plugin_zip
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

CREATED = """
create table noted (id int primary key, v int);
insert into noted select i, i from generate_series(1, 20) i;
"""
PIPELINE = """\
version: 1
name: small
source: {database: postgres}
tables:
  public.noted: {key: [id], columns: {id: int, v: int}}
connectors:
  sink:
    plugin: iceberg-sink
    tables: [public.noted]
    settings: {iceberg.control.commit.interval-ms: 2000}
"""
BROKEN = """\
  broken:
    plugin: PLUGIN
    class: example.RecordingSink
    tables: [public.noted]
    settings:
      file: PLUGIN.out
      file.password: "${secretsmanager:small/source:password}"
      fails: true
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("lake")
    plugin_zip(folder)
    with lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        yield running


def up(lake: RunningLake, connectors: str = "") -> dict[str, dict[str, Any]]:
    """Apply the file with these connectors next to the sink; their states by name."""
    folder = lake.home.parent
    plugin = str(folder / "sink.zip")
    (folder / "small.yaml").write_text(PIPELINE + connectors.replace("PLUGIN", plugin))
    answer = lake.run("up", str(folder / "small.yaml"))
    return {each["connector"]: each for each in answer["connectors"]}


def states(lake: RunningLake) -> dict[str, str]:
    return {c["connector"]: c["state"] for c in lake.run("status")["connectors"]}


def test_a_failed_connector_stops_neither_the_stream_nor_the_sink(lake: RunningLake) -> None:
    up(lake, BROKEN)
    lake.eventually(lambda: states(lake) == {"sink": "running", "broken": "failed"}, 60)
    status = lake.run("status")
    assert status["health"] == "attention"
    assert any(line.startswith("connector broken: ") for line in status["attention"])
    with lake.connect() as connection:
        connection.execute("insert into noted values (21, 1); delete from noted where id = 1")
    lake.assert_equal()
    [[events]] = lake.sql("select count(*) from noted_changes")
    lake.eventually(
        lambda: lake.sql("select count(*) from noted_sink") == [[events]],
        60,
    )
    [[last]] = lake.sql("select _cdc.op from noted_sink where id = 1 order by _cdc.ts desc limit 1")
    assert last == "D"


def test_only_another_plugin_restarts_the_worker(lake: RunningLake) -> None:
    before = lake.pid("connect")
    up(lake, BROKEN.replace("fails: true", "fails: false"))
    lake.eventually(lambda: states(lake) == {"sink": "running", "broken": "running"}, 60)
    assert lake.pid("connect") == before
    up(lake)
    assert states(lake) == {"sink": "running"}
    assert lake.pid("connect") != before
    assert lake.run("status")["health"] == "healthy"
    lake.assert_equal()


def test_a_connector_that_connect_refuses_is_reported_and_up_succeeds(lake: RunningLake) -> None:
    refused = BROKEN.replace("RecordingSink", "NoSuchConnector")
    found = up(lake, refused)["broken"]
    assert found["state"] == "refused"
    assert "NoSuchConnector" in found["last_error"]
    assert states(lake) == {"sink": "running", "broken": "missing"}
    assert lake.run("status")["health"] == "attention"
    lake.assert_equal()
