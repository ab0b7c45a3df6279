"""Control objects that a deployed job writes, in a store that refuses all others, as S3 does."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from cdclake import naming
from cdclake.control_access import CONTROL_ACCESS
from cdclake.jobs.verify.deployed_verify import _with_noted
from cdclake.plan import Plan
from tests.spark.events import MemoryStore
from tests.unit.postgres.tables import actual, column, declared


class StoreOfJob(MemoryStore):
    """Store with the permissions of one job."""

    def __init__(self, job: str) -> None:
        super().__init__()
        self._writes = CONTROL_ACCESS[job].writes

    def write(self, name: str, content: dict[str, Any]) -> None:
        self._check(name)
        super().write(name, content)

    def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
        self._check(name)
        return super().write_if(name, content, etag)

    def _check(self, name: str) -> None:
        if not any(fnmatchcase(name, allowed) for allowed in self._writes):
            raise PermissionError(f"AccessDenied: {name}")


def test_verify_may_note_widened_and_undeclared_columns() -> None:
    control: Any = StoreOfJob(naming.VERIFY_JOB)
    tables = (declared(),)
    plan = Plan(
        name="shop", source_database="d", lake_database="l", tables=tables, new_columns="stop"
    )
    wide, number, note = column("id", "bigint"), column("number"), column("note", "text")
    for columns, noted in (((wide, number, note), {"orders": {"note": "text"}}),
                           ((wide, number), {})):  # fmt: skip
        source = actual(columns=columns)
        found = _with_noted(control, plan, {source.id: source})
        assert {c.name: c.type for c in found.tables[0].columns}["id"] == "bigint"
        assert control.read("new_columns.json").content == {"tables": noted}
    assert control.stored.keys() == {
        "new_columns.json", "widened.json", "resume/orders.json", "repairs/orders.replay.json"
    }  # fmt: skip
