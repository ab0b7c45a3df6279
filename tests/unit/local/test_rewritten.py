"""Tables that `up` reads again: rewritten during a snapshot, or with values that are outdated."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import TableError
from cdclake.jobs.control.progress import Progress
from cdclake.local import streaming_start
from cdclake.local.lake.source_relations import CheckedRelations
from cdclake.postgres.relations import RelationChange
from tests.unit.postgres.tables import declared


def test_only_rewritten_tables_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [declared(table=name, name=name) for name in ("rewritten", "typed", "same")]
    changes = {
        table.source: [RelationChange(kind="rewritten", message="", remedy="", resync=repaired)]
        for table, repaired in zip(tables, (True, False), strict=False)
    }
    changes["public.same"] = []
    checked = CheckedRelations(source=None, changes=changes)  # type: ignore[arg-type]
    asked: list[tuple[str, bool]] = []

    def resync(table: Any, *, wait: bool) -> None:
        asked.append((table.name, wait))

    monkeypatch.setattr(streaming_start, "settle_relations", lambda _: checked)
    monkeypatch.setattr(
        streaming_start, "local_operations", lambda _: SimpleNamespace(resync=resync)
    )
    lake: Any = SimpleNamespace(plan=SimpleNamespace(tables=tables))
    streaming_start._read_rewritten_again(lake)
    assert asked == [("rewritten", False)]


def test_only_outdated_tables_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("outdated", "read", "stopped", "same", "a blank", "refused")
    tables = [declared(table=name, name=name) for name in names]
    progress = Progress()
    for name in ("outdated", "read", "stopped", "a blank", "refused"):
        progress.table(name).missed_below = "p"
    progress.table("refused").quarantined = 1  # each read may fail because of this event
    progress.table("stopped").stop("a reason")
    asked: list[tuple[str, bool]] = []

    def resync(table: Any, *, wait: bool) -> None:
        if table.name == "read":
            raise TableError("read", "the connector is still reading it", "wait")
        asked.append((table.name, wait))

    monkeypatch.setattr(streaming_start, "streamed_tables", lambda _: tables)
    monkeypatch.setattr(Progress, "load", lambda _: progress)
    monkeypatch.setattr(
        streaming_start, "local_operations", lambda _: SimpleNamespace(resync=resync)
    )
    streaming_start._read_outdated_again(SimpleNamespace(control=None, plan=None))  # type: ignore[arg-type]
    assert asked == [("outdated", False)]


def test_up_tells_what_it_found_and_what_it_did() -> None:
    change = RelationChange(kind="attached", message="m", remedy="r", resync=True)
    checked = CheckedRelations(
        source=None,  # type: ignore[arg-type]
        changes={"public.a": [change], "public.b": [change]},
        being_read=frozenset({"public.b"}),
    )
    assert checked.to_resync == {"public.a"}
    assert [(each["source"], each["did"]) for each in checked.to_json()] == [
        ("public.a", "resync"),
        ("public.b", None),
    ]
