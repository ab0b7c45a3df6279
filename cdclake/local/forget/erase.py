"""Erasure of rows from a running local lake, step by step, and its proof."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlparse

from cdclake import naming
from cdclake.activity import step
from cdclake.control_objects import FORGET, outcome_name
from cdclake.erasures import KeyHash
from cdclake.errors import ComponentFailed
from cdclake.forget.erasure_report import places_left
from cdclake.jobs.apply.key_index import INDEX_FOLDER
from cdclake.jobs.control.erasure_register import register_erasure
from cdclake.jobs.control.requests import Answer, read_outcome, request_forget
from cdclake.jobs.erasure.removed_objects import delete_objects, removed_objects
from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.erasure.stored_objects import ObjectVersion
from cdclake.local.forget.erased_values import erased_values, sought_values
from cdclake.local.forget.erasure_position import erasure_position
from cdclake.local.forget.leftovers import leftovers
from cdclake.local.forget.log_redaction import redact_logs
from cdclake.local.forget.table_locations import has_copy, reachable, reachable_of_copy
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.source_credentials import keep_salt
from cdclake.local.lake.spark_jobs import STREAM, run_job
from cdclake.local.operations_backend import local_operations, run_stream
from cdclake.local.reader.duck import lake_reader
from cdclake.plan import Table
from cdclake.trace.row_key import RowKey

_STREAM_TIMEOUT_S = 300.0
_SHORTER_BY = timedelta(seconds=1)  # S3 gives times in seconds


@dataclass(frozen=True, slots=True)
class Erasure:
    """Erasure of some keys of one table; the source has none of their rows."""

    lake: LocalLake
    table: Table
    keys: Sequence[RowKey]
    grace: timedelta  # for queries that have planned files with the rows

    def run(self) -> dict[str, Any]:
        """Erase the rows everywhere, and return the report; it is `ok` if nothing is left."""
        values = erased_values(lake_reader(self.lake), self.table, self.keys)
        keep_salt(self.lake.plan, self.lake.mask_salt)
        is_polled = self.table.delivery == "poll"
        position, outcome = (None, self._by_poll()) if is_polled else self._by_stream()
        removed = self._removed(outcome)
        self._drop_indexes()
        copies = self._copies()
        removed += self._removed_from(copies)
        with step("wait for queries that have begun"):
            time.sleep(self.grace.total_seconds())
        with step("delete the objects that had the rows"):
            deleted = delete_objects(self.lake.client("s3"), self.lake.bucket, removed)
        return {**self._proved(values), "position": position, "deleted_objects": deleted} | {
            "erased": {
                **{name: outcome[name] for name in ("events", "keys", "records", "derived")},
                "copies": copies,
            }
        }

    def _by_stream(self) -> tuple[str, Answer]:
        """Have the stream erase the rows, and return the erasure's position and its outcome."""
        local_operations(self.lake).backend.check_running()
        position = self._register()
        return position, local_operations(self.lake).forget(self.table, self._hashes())

    def _by_poll(self) -> Answer:
        """Have a poll of the table erase the rows, and return the outcome."""
        request = request_forget(self.lake.control, self.table.name, self._hashes())
        poll = naming.POLL_JOB
        report = run_job(self.lake, poll, [self.table.name])
        outcome = read_outcome(self.lake.control, self.table.name, FORGET, request, by=poll)
        if outcome is None:
            [line] = report["tables"]
            raise ComponentFailed(
                f"the poll that erases rows of {self.table.name} failed: {line['error']}",
                "repair what failed, then run the command again",
            )
        return outcome

    def _register(self) -> str:
        """Register the keys with the position of the erasure, and return it."""
        position = erasure_position(self.lake)
        hashed = KeyHash.of(self.table.name, self.lake.mask_salt)
        register_erasure(self.lake.control, hashed, self._hashes(), position)
        return position

    def _hashes(self) -> list[str]:
        hashed = KeyHash.of(self.table.name, self.lake.mask_salt)
        return [hashed.digest(key.parts) for key in self.keys]

    def _removed(self, outcome: Answer) -> list[ObjectVersion]:
        """Return the objects that no reader who begins now can reach."""
        before = self._erased_at()
        client = self.lake.client("s3")
        found: list[ObjectVersion] = []
        names = [self.table.changes, self.table.name, naming.QUARANTINE, *outcome["derived"]]
        for name in names:
            prefix, kept = reachable(self.lake, name)
            found += removed_objects(client, self.lake.bucket, prefix, kept, before)
        return found

    def _copies(self) -> list[str]:
        """Return the names of the table's copies that were written."""
        names = (copy.name for copy in self.lake.plan.copies if copy.table == self.table.name)
        return [name for name in names if has_copy(self.lake, name)]

    def _removed_from(self, copies: list[str]) -> list[ObjectVersion]:
        """Have the copies written as a whole, and return the objects that they had before."""
        if not copies:
            return []
        report = run_job(self.lake, naming.PUBLISH_JOB, copies)
        if not report["ok"]:
            reasons = [each["error"] for each in report["tables"] if each["error"]]
            raise ComponentFailed(
                f"the rows are still in a copy, which could not be written: {reasons[0]}",
                "repair the copy, then run the command again",
            )
        before, client = self._erased_at(), self.lake.client("s3")
        places = (reachable_of_copy(self.lake, name) for name in copies)
        return [
            version
            for prefix, kept in places
            for version in removed_objects(client, self.lake.bucket, prefix, kept, before)
        ]

    def _erased_at(self) -> datetime:
        """Return a time, by S3's clock, after all old files and before any newer one."""
        parsed = urlparse(self.lake.control_uri)
        key = f"{parsed.path.strip('/')}/{outcome_name(self.table.name, FORGET)}"
        head = self.lake.client("s3").head_object(Bucket=parsed.netloc, Key=key)
        written: datetime = head["LastModified"]
        return written - _SHORTER_BY

    def _drop_indexes(self) -> None:
        """Remove the key indexes of old files; the stream, whose memory has them, starts again."""
        streams = bool(self.lake.plan.tables)
        with step("restart the stream" if streams else "remove indexes"), self.lake.home.changing():
            if streams:
                stack.stop_component(self.lake.home, STREAM)
            shutil.rmtree(self.lake.home.data("spark") / INDEX_FOLDER, ignore_errors=True)
            if streams:
                run_stream(self.lake, _STREAM_TIMEOUT_S)

    def _proved(self, values: set[tuple[str, str]]) -> dict[str, Any]:
        """Overwrite the values in logs, search everything for them, and report what is left."""
        with step("search everything that is stored"):
            found, shared = sought_values(lake_reader(self.lake), self.table, values)
            sought = SoughtValues(found)
            redacted = redact_logs(self.lake.home, sought)
            left, elsewhere = leftovers(self.lake, self.table, sought)
        return {
            "ok": not left,
            "table": self.table.name,
            "keys": len(self.keys),
            "redacted_files": redacted,
            "stored": left,
            "elsewhere": elsewhere,
            "shared": shared,
            "remaining": places_left(self.table),
        }
