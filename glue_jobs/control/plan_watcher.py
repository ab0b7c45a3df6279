"""The plan as it is now: a running stream takes up a changed one between two batches."""

from __future__ import annotations

import json
import logging

from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan

log = logging.getLogger("cdclake.stream")


class PlanWatcher:
    """A plan in S3 that is read again whenever its ETag changes."""

    def __init__(self, uri: str) -> None:
        folder, _, self._name = uri.rpartition("/")
        self._store = ObjectStore(folder)
        self._etag: str | None = None
        self._plan: Plan | None = None

    def read(self) -> Plan:
        """The newest plan; FileNotFoundError if there is none."""
        etag = self._store.etag(self._name)
        if self._plan is None or etag != self._etag:
            stored = self._store.read(self._name)
            if stored is None:
                raise FileNotFoundError(f"there is no plan {self._name!r}; run `cdclake up FILE`")
            self._plan, self._etag = Plan.from_json(json.dumps(stored.content)), stored.etag
            log.info("plan %s: %d tables", self._plan.name, len(self._plan.tables))
        return self._plan
