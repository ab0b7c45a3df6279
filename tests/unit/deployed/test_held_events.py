"""Events in the quarantine of a deployment, as its status counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import boto3
import duckdb
import pytest

from cdclake import naming
from cdclake.cli.status_text import deployed_lines
from cdclake.control_objects import PROGRESS, ResumeRequest
from cdclake.debezium.refusals import BROKEN_RULE
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.deployed.deployed_status import deployed_status
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.prometheus_text import samples
from cdclake.ui.overview import Overview
from tests.unit.config.pipelines import VALID
from tests.unit.deployed.stored_lake import DELIVERED, POLLED, PREFIX, add_table, put

pytestmark = pytest.mark.usefixtures("deployed")


@pytest.fixture
def lake(tmp_path: Path) -> DeployedLake:
    """A deployment with one table of each kind."""
    file = tmp_path / "p.yaml"
    file.write_text(f"{VALID}{DELIVERED}{POLLED}environments: {{dev: {{}}}}\n")
    return DeployedLake(file, "dev")


def counts(lake: DeployedLake) -> dict[str, tuple[int | None, int | None]]:
    tables = deployed_status(lake)["tables"]
    return {table["table"]: (table["quarantined"], table["withheld"]) for table in tables}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Put events into a deployed quarantine; return a list with an entry for each reading."""

    def hold(*events: tuple[str, int, str]) -> list[int]:
        add_table(naming.QUARANTINE, rows=len(events), deleted=0)
        readings = []

        class Held:
            @contextmanager
            def open(self, tables: object, plain: object) -> Iterator[duckdb.DuckDBPyConnection]:
                readings.append(1)
                with duckdb.connect(":memory:") as session:
                    session.execute(
                        f'CREATE TABLE {naming.QUARANTINE} ("table" text, topic text,'
                        ' "partition" int, "offset" bigint, reason text)'
                    )
                    for table, offset, reason in events:
                        session.execute(
                            f"INSERT INTO {naming.QUARANTINE} VALUES (?, 't', 0, ?, ?)",
                            (table, offset, reason),
                        )
                    yield session

        monkeypatch.setattr(DeployedLake, "reader", lambda *_: Held())
        return readings

    return hold


def test_refused_events_show_next_to_withheld_ones(lake, held):
    boto3.client("glue").start_job_run(JobName=f"{PREFIX}-stream_changes")
    held(
        *(("orders", offset, "UNREADABLE_VALUE: x") for offset in (0, 1, 1, 2, 3, 4)),
        *(("orders", offset, f"{BROKEN_RULE}: positive") for offset in range(5, 15)),
    )
    assert counts(lake)["orders"] == (15, 10)
    status = deployed_status(lake)
    assert "quarantine" in Overview(lambda: status, {}).answer()["tables"][0]["marks"]
    mine = [sample for sample in samples(status) if sample.labels.get("table") == "orders"]
    held_by_name = {s.name: s.value for s in mine if s.name.endswith("_events")}
    assert held_by_name["cdclake_table_quarantined_events"] == 15
    assert held_by_name["cdclake_table_withheld_events"] == 10
    assert "15 (10 withheld by rules)" in "\n".join(deployed_lines(status, False))


def test_events_in_quarantine_count_until_they_are_replayed(lake, held):
    """A resumed table has them, and tables that the stream does not write."""
    progress = Progress()
    orders = progress.table("orders")
    orders.note_refused(101, limit=100)
    orders.ask_to_resume(ResumeRequest())
    orders.flow()
    put(PROGRESS, progress.to_stored())
    refused = (("orders", 101), ("clicks", 2), ("rates", 1))
    held(*((table, offset, "X") for table, count in refused for offset in range(count)))
    assert counts(lake) == {table: (count, 0) for table, count in refused}


def test_quarantine_is_read_once_for_each_commit(lake, held):
    readings = held(("orders", 1, "X"))
    for _ in range(2):
        assert counts(lake)["orders"] == (1, 0)
    assert len(readings) == 2  # all, and those that are withheld


def test_events_that_cannot_be_counted_are_unknown(lake, held, monkeypatch, request):
    assert counts(lake)["orders"] == (0, 0)  # there is no quarantine yet
    held(("orders", 1, "X"))

    def fails(*_: object) -> NoReturn:
        raise ComponentFailed("the lake could not be read: 403", "run it again", "aws")

    monkeypatch.setattr(DeployedLake, "reader", fails)
    assert counts(lake) == dict.fromkeys(("orders", "clicks", "rates"), (None, None))
    request.getfixturevalue("without_read")
    assert counts(lake)["rates"] == (None, None)
    assert "quarantined" not in "".join(each.name for each in samples(deployed_status(lake)))
