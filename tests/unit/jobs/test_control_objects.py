"""Names and stored keys of the control objects, and that one room alone knows them."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any

import pytest

from cdclake import control_objects as objects
from cdclake.control_objects import (
    DerivedProgress,
    ForgetRequest,
    Lease,
    PollProgress,
    RefusedTotals,
    ReplayRequest,
    ResumeRequest,
    ResyncRequest,
    ScanEnd,
    SourceProgress,
)
from tests.source_tree import sources

RESYNC = ResyncRequest(id="i", position="p", notified=4, rejoins=True)
ENDED = RESYNC.with_end(ScanEnd(status="SUCCEEDED", rows=9, offsets={0: 7}))
POLLED = PollProgress(read_at=1, epoch=2, lsn=3, definition="d", run_plan="s3://b/plan.json")
RESYNC_JSON = {"id": "i", "position": "p", "notified": 4, "rejoins": True}
READ = replace(RESYNC, offsets={0: 7}, topic_id="t")
ENDED_JSON = {"status": "SUCCEEDED", "rows": 9, "offsets": {"0": 7}}
STORED: list[tuple[Any, dict[str, Any]]] = [
    (ReplayRequest("i"), {"id": "i"}),
    (ReplayRequest("i", repeated=2), {"id": "i", "repeated": 2}),
    (RESYNC, RESYNC_JSON),
    (READ, {**RESYNC_JSON, "offsets": {"0": 7}, "topic_id": "t"}),
    (ENDED, {**RESYNC_JSON, "ended": ENDED_JSON}),
    (ResumeRequest(), {}),
    (ResumeRequest(skip_gap=True), {"gap": "given up"}),
    (ResumeRequest(columns_changed=True), {"mended": "columns"}),
    (RefusedTotals(quarantined=3, withheld=5), {"quarantined": 3, "withheld": 5}),
    (Lease("job-1", 12.5), {"owner": "job-1", "expires_at": 12.5}),
    (
        ForgetRequest("i", ("a", "b"), "p", 1.5),
        {"id": "i", "hashes": ["a", "b"], "position": "p", "not_before": 1.5},
    ),
    (POLLED, asdict(POLLED)),
    (
        DerivedProgress("d", {"t": SourceProgress(7, "f")}, 8),
        {"definition": "d", "sources": {"t": [7, "f"]}, "rebuilt": {}, "maintained_at": 8},
    ),
    (
        DerivedProgress("d", {"t": SourceProgress(7, "f", "r")}, 8),
        {"definition": "d", "sources": {"t": [7, "f"]}, "rebuilt": {"t": "r"}, "maintained_at": 8},
    ),
]


@pytest.mark.parametrize(("value", "stored"), STORED)
def test_stored_keys_stay(value: Any, stored: dict[str, Any]) -> None:
    assert value.to_json() == stored
    assert type(value).from_json(stored) == value


@pytest.mark.parametrize(("value", "stored"), STORED)
def test_a_key_of_a_newer_version_is_ignored(value: Any, stored: dict[str, Any]) -> None:
    assert type(value).from_json({**stored, "of_a_newer_version": 1}) == value


def test_resync_request_without_rejoins_is_read() -> None:
    stored = {"id": "i", "position": "p", "notified": 4}
    assert ResyncRequest.from_json(stored) == ResyncRequest(id="i", position="p", notified=4)


def test_progress_of_a_derived_table_without_rebuilds_is_read() -> None:
    stored = {"definition": "d", "sources": {"t": [7, "f"]}, "maintained_at": 8}
    assert DerivedProgress.from_json(stored) == DerivedProgress(
        "d", {"t": SourceProgress(7, "f")}, 8
    )


def test_stored_names_stay() -> None:
    assert objects.PROGRESS == "progress.json"
    assert objects.WIDENED == "widened.json"
    assert objects.WIDENED_CHANGELOGS == "widened_changelogs.json"
    assert objects.request_name("t", "replay") == "repairs/t.replay.json"
    assert objects.outcome_name("t", "resync") == "repaired/t.resync.json"
    assert objects.resume_name("t") == "resume/t.json"
    assert objects.lease_name("t") == "leases/t.json"
    assert objects.split_request_name("t.resync.json") == ("t", "resync")


NAMES = re.compile(
    r"""["'](progress\.json|(repairs|repaired|resume|leases)/|(repairs|repaired)["'])"""
)
KEYS = re.compile(r"""["'](mended|given up|expires_at|rejoins|notified)["']""")


def test_only_control_objects_knows_names_and_keys() -> None:
    folders = ("cdclake/", "glue_jobs/", "stacks/", "lambda/")
    files = {p: text for p, text in sources().items() if p.startswith(folders)}
    found = {path for path, text in files.items() if NAMES.search(text) or KEYS.search(text)}
    assert found == {"cdclake/control_objects.py"}
