"""Requests that fail, or cannot be parsed: each is answered, and none fails the batch of all."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.control_objects import (
    FORGET,
    REPLAY,
    RESYNC,
    failed_result,
    outcome_content,
    outcome_name,
    request_name,
)
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import read_outcome
from cdclake.jobs.operations.executor import OperationExecutor
from tests.spark.events import MemoryStore, plan_of


@pytest.mark.parametrize(
    ("verb", "content", "reason"),
    [
        (RESYNC, {"id": "a", "notified": 4}, "the request has no 'position'"),
        (REPLAY, {}, "the request has no 'id'"),
    ],
)
def test_malformed_request_is_answered_and_removed(
    verb: str, content: dict[str, Any], reason: str
) -> None:
    control: Any = MemoryStore()
    plan = plan_of()
    table = plan.tables[0].name
    control.write(request_name(table, verb), content)

    def no_batch(_: Any) -> Any:
        raise AssertionError("no batch is needed for it")

    events: Any = None
    OperationExecutor(control, {}).run(plan, events, {}, Progress(), no_batch)
    stored = control.read(outcome_name(table, verb))
    assert stored.content == {"id": content.get("id", ""), "error": reason}
    assert control.read(request_name(table, verb)) is None


@pytest.mark.parametrize("answered_by", ["stream", "poll_tables"])
def test_a_failed_request_names_the_component_whose_log_tells_why(answered_by: str) -> None:
    control: Any = MemoryStore()
    failed = outcome_content("r1", failed_result(ValueError("no such column")))
    control.write(outcome_name("orders", FORGET), failed)
    with pytest.raises(ComponentFailed, match="no such column") as caught:
        read_outcome(control, "orders", FORGET, "r1", by=answered_by)
    assert caught.value.component == answered_by
    assert f"see the log of {answered_by}" in caught.value.remedy
    assert read_outcome(control, "orders", FORGET, "another") is None
