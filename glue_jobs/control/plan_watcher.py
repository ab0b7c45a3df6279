"""The current plan: a running stream applies a changed plan between two batches."""

from __future__ import annotations

import json
import logging

from cdclake.control_objects import WIDENED
from cdclake.errors import APPLY_FILE
from cdclake.iceberg.widening import with_widened
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan
from cdclake.source_notes import read_widened

log = logging.getLogger("cdclake.stream")


class PlanWatcher:
    """Reader of a plan in S3, and of the widened types over it, again when an ETag has changed."""

    def __init__(self, uri: str, control: ObjectStore | None = None) -> None:
        folder, _, self._name = uri.rpartition("/")
        self._store = ObjectStore(folder)
        self._control = control
        self._etags: tuple[str | None, str | None] = (None, None)
        self._plan: Plan | None = None

    def read(self) -> Plan:
        """Return the current plan; FileNotFoundError if there is none."""
        widened_etag = None if self._control is None else self._control.etag(WIDENED)
        etags = (self._store.etag(self._name), widened_etag)
        if self._plan is None or etags != self._etags:
            stored = self._store.read(self._name)
            if stored is None:
                raise FileNotFoundError(f"no plan {self._name!r}; {APPLY_FILE}")
            widened = read_widened(self._control) if self._control else {}
            plan = Plan.from_json(json.dumps(stored.content))
            self._plan, self._etags = with_widened(plan, widened), etags
            log.info("plan %s: %d tables", self._plan.name, len(self._plan.tables))
        return self._plan
