"""The current plan: a running stream applies a changed plan between two batches."""

from __future__ import annotations

import json
import logging

from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan

log = logging.getLogger("cdclake.stream")


class PlanWatcher:
    """Reader of a plan in S3, which it reads again when its ETag has changed."""

    def __init__(self, uri: str) -> None:
        folder, _, self._name = uri.rpartition("/")
        self._store = ObjectStore(folder)
        self._etag: str | None = None
        self._plan: Plan | None = None

    def read(self) -> Plan:
        """Return the current plan; FileNotFoundError if there is none."""
        etag = self._store.etag(self._name)
        if self._plan is None or etag != self._etag:
            stored = self._store.read(self._name)
            if stored is None:
                raise FileNotFoundError(f"no plan {self._name!r}; run `cdclake up FILE`")
            self._plan, self._etag = Plan.from_json(json.dumps(stored.content)), stored.etag
            log.info("plan %s: %d tables", self._plan.name, len(self._plan.tables))
        return self._plan
