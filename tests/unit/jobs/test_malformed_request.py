"""A request that cannot be parsed is answered and removed; it must not fail the batch of all."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.control_objects import REPLAY, RESYNC, outcome_name, request_name
from cdclake.jobs.control.progress import Progress
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
