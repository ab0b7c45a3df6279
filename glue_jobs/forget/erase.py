"""Erasure of rows from a lake that is running, step by step, and its proof."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cdclake import naming
from cdclake.activity import step
from cdclake.control_objects import FORGET, erased_name
from cdclake.erasures import ErasedKeys, KeyHash
from cdclake.errors import ComponentFailed
from cdclake.fail_points import reach
from cdclake.firehose.arrival import DELIVERY_S
from cdclake.forget.erasure_report import erased_places, places_left
from cdclake.jobs.control.erasure_register import register_erasure
from cdclake.jobs.control.requests import (
    Answer,
    last_erasure,
    pending_forget,
    read_outcome,
    request_forget,
    unanswered_hashes,
)
from cdclake.jobs.erasure.removed_objects import OtherWriter, delete_objects, removed_objects
from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.erasure.stored_objects import Leftover, ObjectVersion
from cdclake.jobs.forget.erased_values import erased_values, sought_values
from cdclake.jobs.forget.erasure_backend import ErasureBackend
from cdclake.jobs.forget.failed_records import FailedRecords, error_prefixes
from cdclake.jobs.forget.other_records import only_others_have, undeclared_tables
from cdclake.jobs.reader.relations import may_be_in_kafka
from cdclake.plan import Table
from cdclake.redrive.failed_events import FailedEvents
from cdclake.trace.row_key import RowKey

_SHORTER_BY = timedelta(seconds=1)  # S3 gives times in seconds
_ALONE: Mapping[str, OtherWriter] = {}


@dataclass(frozen=True, slots=True)
class Erasure:
    """Erasure of some keys of one table; the source has none of their rows."""

    lake: ErasureBackend
    table: Table
    keys: Sequence[RowKey]
    grace: timedelta  # for queries that have planned files with the rows

    def run(self) -> dict[str, Any]:
        """Erase the rows everywhere, and return the report; it is `ok` if nothing is left."""
        values = erased_values(self.lake.reader, self.table, self.keys)
        position, outcome = self._erase()
        failed = self._remove_failed(position)
        reach("between_erasure_and_deletion")
        removed = self._removed(outcome)
        self.lake.restart_stream()
        copies = self._copies()
        removed += self._removed_from(copies)
        with step("wait for queries that have begun"):
            time.sleep(self.grace.total_seconds())
        with step("delete the objects that had the rows"):
            objects = self.lake.objects
            deleted = delete_objects(objects.s3, objects.bucket, removed)
        return {**self._proved(values), "position": position, "deleted_objects": deleted} | {
            "erased": erased_places(self.table, outcome, failed, copies)
        }

    def _erase(self) -> tuple[str | None, Answer]:
        """Have the writer erase the rows; return the erasure's position, if any, and its outcome.

        A poll needs no position: later ones read a source without the rows.
        """
        lake, table = self.lake, self.table
        if table.delivery == "poll":
            left = unanswered_hashes(lake.control, table.name)
            hashes = dict.fromkeys((*self._hashes(), *left))
            request = request_forget(lake.control, table.name, [*hashes])
            return None, self._by_job(naming.POLL_JOB, request)
        if table.delivery == "stream":
            position, request = self._request_in_turn()
            return position, lake.operations.await_erasure(table, request)
        position, delivery_s = lake.position(), lake.delivery_seconds(table)
        with lake.operations.backend.exclusive():
            request = self._request(position, not_before=time.time() + delivery_s)
        with step("wait until Firehose has appended what it had decoded"):
            time.sleep(delivery_s)
        return position, self._by_job(naming.APPLY_JOB, request)

    def _by_job(self, job: str, request: str) -> Answer:
        """Have a run of the job over the table answer the request, and return the outcome."""
        report = self.lake.run_job(job, [self.table.name])
        outcome = read_outcome(self.lake.control, self.table.name, FORGET, request, by=job)
        if outcome is None:
            [line] = report["tables"]
            raise _not_answered(job, self.table.name, line["error"])
        return outcome

    def _remove_failed(self, position: str | None) -> dict[str, int]:
        """Remove the rows' events from Firehose's failed records.

        Returns how many there were below each error prefix.
        """
        prefixes = error_prefixes(self.lake.plan, self.table)
        if not prefixes or position is None:
            return {}
        hashed = KeyHash.of(self.table.name, self.lake.salt)
        records = FailedRecords(
            self.lake.objects.s3,
            self.lake.state_bucket,
            # Without the catalog: a row that may also be a removed table's is erased, too.
            FailedEvents(self.lake.plan),
            {self.table.name: ErasedKeys(hashed, dict.fromkeys(self._hashes(), position))},
        )
        with step("remove failed records of Firehose"):
            return {prefix: records.remove(prefix) for prefix in prefixes}

    def _request_in_turn(self) -> tuple[str, str]:
        """Request the erasure from the stream, and return its position and the request's id.

        After the wait for an earlier request another command may have been first.
        """
        operations = self.lake.operations
        while True:
            operations.await_earlier_erasure(self.table)
            position = self.lake.position()
            with operations.backend.exclusive():
                if pending_forget(self.lake.control, self.table.name) is None:
                    return position, self._request(position)

    def _request(self, position: str, *, not_before: float = 0.0) -> str:
        """Request the erasure of the keys, register them at the position, and return the id.

        The caller excludes other commands. As soon as the keys are registered, their deletes are
        refused, too. A command that ends then has left a request, so that their rows leave the
        tables all the same.
        """
        control, name, hashes = self.lake.control, self.table.name, self._hashes()
        hashed = KeyHash.of(name, self.lake.salt)
        request = request_forget(control, name, hashes, position=position, not_before=not_before)
        reach("between_request_and_register")
        register_erasure(control, hashed, hashes, position)
        return request

    def _hashes(self) -> list[str]:
        hashed = KeyHash.of(self.table.name, self.lake.salt)
        return [hashed.digest(key.parts) for key in self.keys]

    def _removed(self, outcome: Answer) -> list[ObjectVersion]:
        """Return the objects that no reader who begins now can reach."""
        objects = self.lake.objects
        names = [self.table.changes, self.table.name, naming.QUARANTINE, *outcome["derived"]]
        # A new object of a table with another writer may be about to be committed.
        shared = [self.table.changes] if self.table.delivery == "firehose" else []
        shared += [naming.QUARANTINE] if self._is_quarantine_shared() else []
        since = self._erased_at() - timedelta(seconds=DELIVERY_S)
        writers = {
            prefix: OtherWriter(known, since)
            for prefix, known in (
                objects.reachable_from(outcome["metadata"][name]) for name in shared
            )
        }
        return [*self._unreachable(map(objects.reachable, names), writers)]

    def _is_quarantine_shared(self) -> bool:
        """Check whether another writer than the run that erases may write to the quarantine.

        It takes no lease for that. The stream erases between two batches of all of its tables, but
        the poll of another table may be in flight.
        """
        ours, plan = self.table, self.lake.plan
        others = (other.delivery for other in plan.all_tables if other != ours)
        return bool(plan.deliveries) or any({ours.delivery, each} != {"stream"} for each in others)

    def _copies(self) -> list[str]:
        """Return the names of the table's copies that were written."""
        names = (copy.name for copy in self.lake.plan.copies if copy.table == self.table.name)
        return [name for name in names if self.lake.objects.has_copy(name)]

    def _removed_from(self, copies: list[str]) -> list[ObjectVersion]:
        """Have the copies written as a whole, and return the objects that they had before."""
        if not copies:
            return []
        report = self.lake.run_job(naming.PUBLISH_JOB, copies)
        if not report["ok"]:
            reasons = [each["error"] for each in report["tables"] if each["error"]]
            raise ComponentFailed(
                f"the rows are still in a copy, which could not be written: {reasons[0]}",
                "repair the copy, then run the command again",
            )
        for copy in copies:
            self._check_written(copy)
        return [*self._unreachable(map(self.lake.objects.reachable_of_copy, copies))]

    def _check_written(self, copy: str) -> None:
        """Raise ComponentFailed if the copy has rows that were written before the erasure.

        The job writes nothing while the stream has not added a declared column to the state.
        """
        commit = self.lake.objects.newest_commit(copy)
        erasure = last_erasure(self.lake.control, self.table.name)
        if commit is not None and (commit.failed or commit.stamp.erasure != erasure):
            raise ComponentFailed(
                f"the rows are still in the copy {copy}: {naming.PUBLISH_JOB} has not written it",
                "wait until the stream has added the table's declared columns, then run the command"
                " again",
            )

    def _unreachable(
        self, places: Iterator[tuple[str, set[str]]], writers: Mapping[str, OtherWriter] = _ALONE
    ) -> Iterator[ObjectVersion]:
        """Yield the objects below each prefix that are old and not among its locations."""
        before, objects = self._erased_at(), self.lake.objects
        for prefix, kept in places:
            yield from removed_objects(
                *(objects.s3, objects.bucket, prefix, kept, before), other=writers.get(prefix)
            )

    def _erased_at(self) -> datetime:
        """Return a time, by S3's clock, after all old files and before any newer one.

        Call it before listing the reachable objects.
        """
        return self.lake.control.written_at(erased_name(self.table.name)) - _SHORTER_BY

    def _proved(self, values: set[tuple[str, str]]) -> dict[str, Any]:
        """Overwrite the values in logs, search everything for them, and report what is left.

        Rows of other tables may have a person's data, too, but no erasure of this table's rows
        removes them: they are listed apart.
        """
        with step("search everything that is stored"):
            sought, shared = sought_values(self.lake.reader, self.table, values)
            matched = SoughtValues(sought)
            redacted = self.lake.redact(matched)
            left, elsewhere = leftovers(self.lake, self.table, matched)
            in_kafka = may_be_in_kafka(self.table, self.lake.reader.catalog)
            undeclared = self.lake.objects.undeclared_folders()
            declared, tables = self.lake.objects.declared, self.lake.plan.all_tables
            records = undeclared_tables(self.lake.reader, declared, tables)
        return {
            "ok": not left,
            "table": self.table.name,
            "keys": len({key.words for key in self.keys}),
            "redacted_files": redacted,
            "stored": left,
            "elsewhere": elsewhere,
            "shared": shared,
            "remaining": places_left(
                *(self.lake.plan, self.table),
                in_kafka=in_kafka,
                undeclared=undeclared,
                records=records,
            ),
        }


Places = list[dict[str, Any]]


def leftovers(lake: ErasureBackend, table: Table, sought: SoughtValues) -> tuple[Places, Places]:
    """Return where values are left, and where rows of other tables have them."""
    objects = lake.objects
    folders = objects.folders_of_others(table)
    others = tuple(f"s3://{objects.bucket}/{folder}" for folder in folders)
    found = sorted(lake.search(sought, tuple(objects.folders_of(table))))
    refused = _quarantine_of_others(lake, table, sought, found)
    left: Places = []
    elsewhere: Places = []
    for place in found:
        is_others = place.where.startswith(others) or place.where in refused
        (elsewhere if is_others else left).append(place.to_json())
    return left, elsewhere


def _quarantine_of_others(
    lake: ErasureBackend, table: Table, sought: SoughtValues, found: Sequence[Leftover]
) -> set[str]:
    """Return the current files of the quarantine if only records of other tables have values."""
    if naming.QUARANTINE not in lake.reader.catalog.names():
        return set()
    prefix, files = lake.objects.reachable(naming.QUARANTINE)
    folder = f"s3://{lake.objects.bucket}/{prefix}"
    if not any(place.where.startswith(folder) for place in found):
        return set()
    others = only_others_have(lake.reader, table, lake.objects.declared, sought)
    return files if others else set()


def _not_answered(job: str, table: str, error: str | None) -> ComponentFailed:
    if error is None:  # a second command adds the first one's keys to its request
        return ComponentFailed(
            f"the run of {job} found another erasure of {table} instead of this command's, or left"
            " it to a later run: its rows may not be erased yet",
            "when the other command has ended, run this one again",
        )
    return ComponentFailed(
        f"the run of {job} that erases rows of {table} failed: {error}",
        "repair what failed, then run the command again",
    )
