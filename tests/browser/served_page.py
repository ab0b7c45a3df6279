"""The real page over planted answers, which a test changes while the page is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cdclake.errors import NotRunning
from cdclake.ui.overview import Overview
from cdclake.ui.page_server import Answer, Query, page_server
from tests.unit.ui.answers import HOSTILE, status, table

TOKEN = "planted"
SNAPSHOT_ID = 8_315_402_847_593_123_457
_JOB = {
    "job": "verify_tables", "schedule": "rate(1 hour)", "last_run": "2026-11-26T20:00:00",
    "ended_at": "2026-11-26T20:01:00", "exit_code": 1, "next_run": None,
}  # fmt: skip
_COLUMN = {
    "column": "mail", "source": "mail", "earlier_names": [HOSTILE], "key": False,
    "source_type": "text", "changelog_type": "string", "state_type": "string", "mask": "hash",
    "line": 12,
}  # fmt: skip
_SNAPSHOT = {
    "relation": "orders", "snapshot": SNAPSHOT_ID, "committed_at": HOSTILE, "rows": 100,
    "operation": "append", "files": 2, "bytes": 4096, "tags": [HOSTILE], "current": True,
}  # fmt: skip
_SNAPSHOTS = {
    "ok": True, "snapshots": [_SNAPSHOT], "schema_changes": [
        {"relation": "orders", "snapshot": "8315402847593", "committed_at": HOSTILE,
         "column": "mail", "change": f"renamed from {HOSTILE}"},
    ],
}  # fmt: skip
_EVENT = {
    "table": "orders", "key": {"id": HOSTILE}, "at": "2026-11-26T20:00:00", "bytes": 321,
    "topic": "shop.public.orders", "partition": 0, "offset": 17, "withheld": False,
    "accepted_now": False, "remedy": "`cdclake replay --table orders`",
    "reasons": [{"column": "n", "reason": "NOT_REPRESENTABLE", "value": HOSTILE}],
}  # fmt: skip
_REDRIVEN = {
    **_EVENT, "topic": "s3://lake/firehose/redriven/processing-failed/x", "partition": None,
    "offset": 3,
}  # fmt: skip


class PlantedLake:
    """Answers of a lake; `status` may be replaced at any time."""

    def __init__(self, target: str = "local") -> None:
        self.status: dict[str, Any] | None = status(table("orders"), table("customers"))
        self.answers_now = threading.Event()
        self.answers_now.set()
        self._overview = Overview(self._read, {"target": target, "refresh_s": 1})

    def _read(self) -> Mapping[str, Any]:
        self.answers_now.wait()
        if self.status is None:
            raise NotRunning("no lake is running here", "start one with `cdclake up FILE`")
        return self.status

    def answers(self) -> dict[str, Answer]:
        """Return the answers of the page by name."""
        return {
            "overview": lambda _: self._overview.answer(),
            "table": _columns,
            "snapshots": lambda _: _SNAPSHOTS,
            "quarantine": lambda _: {"ok": True, "events": [_EVENT, _REDRIVEN]},
            "trace": _trace,
            "jobs": lambda _: {"ok": True, "jobs": [_JOB]},
        }


def _columns(query: Query) -> Mapping[str, Any]:
    name = query["table"][0]
    return {"ok": True, "table": name, "source": f"public.{HOSTILE}", "file": "shop.yaml",
            "columns": [_COLUMN], "excluded": [HOSTILE]}  # fmt: skip


def _trace(query: Query) -> Mapping[str, Any]:
    event = {"operation": "update", "tx_id": 7, "before": {"note": "a"}, "after": {"note": HOSTILE},
             "reason": None, "topic": "shop.public.orders", "partition": 0,
             "offset": 17}  # fmt: skip
    redriven = {**event, "operation": "unknown", "tx_id": None, "before": None, "after": None,
                "topic": _REDRIVEN["topic"], "partition": None, "offset": 3}  # fmt: skip
    hop = {"event": 0, "hop": "source", "at": "2026-11-26T20:00:00", "seconds": None, "lsn": "0/1"}
    return {
        "ok": True, "table": query["table"][0], "key": query["key"], "situation": "applied",
        "findings": [{"code": "applied", "text": HOSTILE, "remedy": ""}],
        "events": [event, redriven], "hops": [hop],
        "readers": {"source": {"has_row": True}, "orders": None},
    }  # fmt: skip


@contextmanager
def served(answers: Mapping[str, Answer]) -> Iterator[str]:
    """Serve the page over these answers; yield the address with the token."""
    with page_server(0, TOKEN, answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/#token={TOKEN}"
        finally:
            server.shutdown()
            thread.join()
