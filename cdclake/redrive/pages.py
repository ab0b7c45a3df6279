"""Pages of a redrive: each call takes the next failed objects, for a limited time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.redrive.objects import FailedObject, FailedObjects

MAX_RUN_S = 60.0  # no object starts later than this; a single one may take minutes
_COUNTERS = ("redriven", "quarantined", "quarantined_of", "too_large", "put_again", "kept")

RedrivePage = Callable[[dict[str, Any]], dict[str, Any]]


def redrive_page(
    objects: FailedObjects,
    request: Mapping[str, Any],
    redrive: Callable[[FailedObject], None],
    clock: Callable[[], float],
) -> dict[str, Any]:
    """Redrive the next objects that had failed when the first page of the run started.

    Return `before` and `after`, which continue the run in the next request, and `more` while
    objects are left.
    """
    before = datetime.fromisoformat(request.get("before") or datetime.now(UTC).isoformat())
    after, more = request.get("after") or "", False
    deadline = clock() + MAX_RUN_S
    for failed in objects.listed(after=after, before=before):
        if clock() > deadline:
            more = True
            break
        redrive(failed)
        after = failed.key
    return {"more": more, "before": before.isoformat(), "after": after}


def redrive_all(*pages: RedrivePage, dry_run: bool) -> dict[str, Any]:
    """Call each of `pages` until no objects are left, and return the sums of the answers.

    Without pages there is nothing to redrive. A page is `RedriveService.page` or
    `PutRedriveService.page`, or a call to the deployed function that runs it.
    """
    counts = {name: Counter[str]() for name in _COUNTERS}
    objects = dropped = 0
    for page in pages:
        request: dict[str, Any] = {"dry_run": dry_run}
        more = True
        while more:
            answer = page(request)
            for name, counted in counts.items():
                counted.update(answer.get(name, {}))
            objects, dropped = objects + answer["objects"], dropped + answer.get("dropped", 0)
            request = {"dry_run": dry_run, "before": answer["before"], "after": answer["after"]}
            more = answer["more"]
    tables = [*_tables(counts["redriven"], counts.pop("quarantined_of"))]
    return {
        "ok": not counts["too_large"] and not counts["kept"],
        "dry_run": dry_run,
        "objects": objects,
        "dropped": dropped,
        **{name: dict(counted) for name, counted in counts.items()},
        "tables": tables,
    }


def _tables(redriven: Counter[str], quarantined: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the counts of changes by table; `redriven` has them by changelog."""
    suffix = naming.changes_name("")
    rows = {changelog.removesuffix(suffix): count for changelog, count in redriven.items()}
    for table in sorted({*rows, *quarantined}):
        yield {
            "table": table,
            "redriven": rows.get(table, 0),
            "quarantined": quarantined[table],
        }
