"""The overview: marks of each planted fault, rates between two answers, and columns."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cdclake.config.resolve import load_plan
from cdclake.ui.column_path import column_path
from cdclake.ui.overview import Overview
from tests.unit.ui.answers import status, table

FAULTS: dict[str, dict[str, Any]] = {
    "stopped": {"state": "stopped"},
    "unknown": {"state": "unknown", "lag_events": None, "quarantined": None, "withheld": None},
    "quarantine": {"quarantined": 3, "withheld": 1},
    "unverified": {"last_verified": None},
    "differs": {"last_verified": {"at": "2026-11-26T20:00:00+00:00", "equal": False}},
    "error": {"last_error": "the source does not answer"},
    "schema": {"source_changes": [{"message": "new column", "remedy": "declare it", "line": 7}]},
}


class Lake:
    """Answers of `status`, and a clock that the test sets."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.now, self.read = list(answers), 100.0, 0

    def status(self) -> dict[str, Any]:
        self.read += 1
        return self.answers[min(self.read, len(self.answers)) - 1]

    def overview(self) -> Overview:
        return Overview(self.status, {"target": "local", "refresh_s": 2}, lambda: self.now)


def _hops(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {hop["hop"]: hop for hop in answer["hops"]}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_a_mark(fault: str) -> None:
    answer = Lake(status(table("orders", **FAULTS[fault]), table("fine"))).overview().answer()
    assert [row["marks"] for row in answer["tables"]] == [[fault], []]


def test_what_a_rule_withholds_is_no_mark() -> None:
    answer = Lake(status(table("orders", quarantined=2, withheld=2))).overview().answer()
    assert answer["tables"][0]["marks"] == []


def test_a_lag_that_stays_is_a_mark() -> None:
    behind, level = status(table("orders", lag_events=5)), status(table("orders"))
    later = status(table("orders", end_offset=305, lag_events=5))
    assert _marks_every_5_s(behind, behind, level, later) == [[], ["lag"], [], []]


def test_a_busy_table_that_is_read_on_does_not_lag() -> None:
    busy = [status(table("orders", end_offset=300 + n, lag_events=50)) for n in range(0, 400, 100)]
    assert _marks_every_5_s(*busy) == [[], [], [], []]
    slow = [status(table("orders", end_offset=300 + n, lag_events=50)) for n in range(0, 120, 30)]
    assert _marks_every_5_s(*slow) == [[], ["lag"], [], ["lag"]]


def _marks_every_5_s(*answers: dict[str, Any]) -> list[list[str]]:
    lake = Lake(*answers)
    overview, found = lake.overview(), []
    for _ in answers:
        found.append(overview.answer()["tables"][0]["marks"])
        lake.now += 5
    return found


def test_rates_are_those_since_the_answer_before() -> None:
    slot = {"wal_bytes": 4096, "limit_bytes": None, "wal_position": 1_000_000}
    later = status(
        table("orders", changes_rows=320, end_offset=340, lag_events=20, unapplied_rows=8),
        slot={**slot, "wal_position": 1_000_400},
    )
    lake = Lake(status(table("orders")), later, status(table("orders", changes_rows=None)))
    overview = lake.overview()
    assert {hop["rate"] for hop in overview.answer()["hops"]} == {None}
    lake.now += 4
    hops = _hops(overview.answer())
    assert [hop["rate"] for hop in hops.values()] == [100, 10, 5, 5, 3, 5]
    lake.now += 4
    assert _hops(overview.answer())["changelog"]["rate"] is None


def test_every_hop_has_its_lag_and_freshness() -> None:
    behind = table("orders", lag_events=20, unapplied_rows=8, state_age_s=2.0, incomplete=1)
    hops = _hops(Lake(status(behind, table("fine"))).overview().answer())
    assert [hop["lag"] for hop in hops.values()] == [4096, 512, 20, 8, 1, 1]
    assert [hop["freshness_s"] for hop in hops.values()] == [None, 0.2, 0.3, 1.5, 3.5, 1.5]


def test_a_topic_of_several_tables_counts_once() -> None:
    def domain(end: int, lag: int) -> dict[str, Any]:
        names, figures = ("orders", "items"), {"end_offset": end, "lag_events": lag}
        shared = [table(name, topic="shop", **figures) for name in names]
        return status(*shared, table("unknown", topic="shop", end_offset=None, lag_events=None))

    lake = Lake(domain(100, 30), domain(140, 50))
    overview = lake.overview()
    assert _hops(overview.answer())["kafka"]["lag"] == 30
    lake.now += 4
    hops = _hops(overview.answer())
    assert (hops["connector"]["rate"], hops["kafka"]["rate"]) == (10, 5)
    assert hops["kafka"]["lag"] == 50


def test_a_dead_component_is_the_state_of_its_hop() -> None:
    parts = [{"name": "kafka", "state": "dead"}, {"name": "stream", "state": "running"},
             {"name": "firehose", "state": "dead"}]  # fmt: skip
    hops = _hops(Lake(status(table("orders"), components=parts)).overview().answer())
    assert hops["kafka"]["state"] == hops["changelog"]["state"] == "dead"
    assert hops["wal"]["state"] is None


def test_a_deployment_without_figures_has_every_hop() -> None:
    answer = status(table("t", lag_events=None, freshness_s=None), slot=None, lag_events=7,
                    heartbeat=None, freshness_s=3.0)  # fmt: skip
    hops = _hops(Lake(answer).overview().answer())
    assert list(hops) == ["wal", "connector", "kafka", "changelog", "state", "readers"]
    assert (hops["kafka"]["lag"], hops["readers"]["freshness_s"]) == (7, 3.0)


def test_a_slow_reading_has_the_components_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdclake.ui.overview._READ_WAIT_S", 0.05)
    answered, lake = threading.Event(), Lake(status(table("orders")))
    answered.set()

    def read() -> dict[str, Any]:
        answered.wait()
        return lake.status()

    parts = [{"name": "kafka", "state": "dead"}]
    overview = Overview(read, {}, lambda: lake.now, with_components=lambda found: {
        **found, "components": parts, "health": "down", "attention": ["down: kafka"],
    })  # fmt: skip
    assert overview.answer()["health"] == "healthy"
    answered.clear()
    lake.now += 2
    late = overview.answer()
    assert (late["health"], _hops(late)["kafka"]["state"]) == ("down", "dead")
    assert late["attention"][0] == "down: kafka" and "older" in late["attention"][1]
    assert late["tables"][0]["marks"] == [] and overview.answer()["health"] == "down"
    answered.set()
    assert _wait_for_health(overview) == "healthy" and lake.read == 2


def _wait_for_health(overview: Overview) -> str:
    """Return the health once the reading has ended."""
    for _ in range(100):
        if (found := str(overview.answer()["health"])) == "healthy":
            break
    return found


def test_open_pages_share_an_answer() -> None:
    lake = Lake(status(table("orders")))
    overview = lake.overview()
    overview.answer()
    lake.now += 0.5
    overview.answer()
    assert lake.read == 1
    lake.now += 1
    overview.answer()
    assert lake.read == 2


def test_columns_have_types_masks_and_lines(tmp_path: Any) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "version: 1\nname: shop\nsource: {database: shop}\ntables:\n  public.orders:\n"
        "    key: [id]\n    columns:\n      id: bigint\n      n: numeric(12,2)\n"
        "      mail: {type: text, mask: hash}\n      phone: {type: text, mask: truncate(3)}\n"
    )
    found = column_path(load_plan(file).table("orders"), {"id": 8}.get)
    assert [(c["column"], c["source_type"], c["mask"], c["line"]) for c in found] == [
        ("id", "bigint", None, 8), ("n", "numeric(12,2)", None, None),
        ("mail", "text", "hash", None),
        ("phone", "text", "truncate to 3", None),
    ]  # fmt: skip
    assert found[0]["key"] and found[1]["state_type"] == "decimal(12,2)"
