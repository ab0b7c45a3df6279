"""Tables of the stream: one object for each, which lasts as long as the plan has the table."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial

from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.erasures import ErasedKeys
from cdclake.iceberg.schemas import changes_schema, quarantine_schema, state_schema
from cdclake.iceberg.widening import widened_tables
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import NewlyRefused
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.stream.partition_summary import RefusedReasons
from cdclake.jobs.stream.schema_drift import KnownColumns, followed_columns
from cdclake.jobs.stream.table_errors import note_reasons, stop_after
from cdclake.jobs.stream.table_schedule import TableSchedule
from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Plan
from cdclake.stream_requests import request_replay
from cdclake.widened_columns import note_changelogs


class StreamTables:
    """Creation of the Iceberg tables, and the streams of the tables that exist."""

    def __init__(self, control: ObjectStore, leases: Leases, progress: Progress) -> None:
        self._control = control
        self._leases = leases
        self._progress = progress
        self.noting = threading.RLock()  # of the threads that change the progress
        self._created_for: Plan | None = None
        self._streams: dict[str, TableStream] = {}  # by table; of Firehose's tables, too
        self._lake: LakeTables | None = None
        self._quarantine: TableHandle | None = None

    def follow(self, plan: Plan, spark: SparkSession) -> bool:
        """Create all Iceberg tables, whether or not events arrive; return True for a new plan."""
        if plan == self._created_for:
            self._create_delivered(plan)
            return False
        self._lake = lake = LakeTables(spark, plan.lake_database)
        lake.create(quarantine_schema(plan))
        self._quarantine = TableHandle(lake, naming.QUARANTINE)
        for table in plan.tables:
            place = self._progress.table(table.name)
            place.first_seen = followed_columns(place.first_seen, table)
            before = self._streams.get(table.name)
            self._streams[table.name] = TableStream(
                lake=lake,
                plan=plan,
                table=table,
                leases=self._leases,
                place=place,
                schedule=before.schedule if before else TableSchedule(),
                remember=partial(self._remember, table.name),
                remember_refused=partial(self._remember_refused, table.name),
                remember_quarantined=partial(self._remember_quarantined, table.name),
            )
            self._create(self._streams[table.name])
        kept = {table.name for table in plan.tables}
        for removed in set(self._progress.tables) - kept:
            del self._progress.tables[removed]
        self._streams = {name: self._streams[name] for name in kept}
        self._note_changelogs(plan)
        for widened in widened_tables(self._created_for, plan):
            # Events that the previous batch quarantined, with any earlier request to replay them.
            request_replay(self._control, widened)
        self._created_for = plan
        return True

    @property
    def lake(self) -> LakeTables:
        """The lake of the plan that was followed last."""
        if self._lake is None:
            raise RuntimeError("no plan was followed")
        return self._lake

    def quarantine_target(self) -> FileTarget:
        """Return the target of files with refused records."""
        if self._quarantine is None:
            raise RuntimeError("no plan was followed")
        return self._quarantine.target()

    def of(self, table: str) -> TableStream:
        """Return the table's stream."""
        return self._streams[table]

    def __iter__(self) -> Iterator[TableStream]:
        """Yield the tables that the stream writes."""
        return (s for s in self._streams.values() if s.table.delivery == "stream")

    def all(self) -> list[TableStream]:
        """Return the tables of the plan, Firehose's among them."""
        return list(self._streams.values())

    def drop_events_of(self, erased: Mapping[str, ErasedKeys]) -> None:
        """Drop the older events of these keys, by table, from now on."""
        for name, stream in self._streams.items():
            if erased.get(name) is not stream.erased:
                stream.drop_events_of(erased.get(name))

    def is_created(self, stream: TableStream) -> bool:
        """Create the table now if that failed before; return whether it exists as planned."""
        if not stream.is_created:
            self._create(stream)
        return stream.is_created

    def _create_delivered(self, plan: Plan) -> None:
        """Create Firehose's tables that are due; the other tables are created before their gap."""
        now = time.time()
        delivered = (s for s in self._streams.values() if s.table.delivery == "firehose")
        due = [stream for stream in delivered if stream.place.is_due(now)]
        for stream in due:
            self._create(stream)
        if any(stream.is_created for stream in due):
            self._note_changelogs(plan)

    def _create(self, stream: TableStream) -> None:
        """Create changelog and state; stop the table if they cannot be evolved."""
        try:
            for schema in (changes_schema, state_schema):
                stream.lake.create(schema(stream.table, stream.plan))
        except Exception as error:
            stop_after(error, stream, {})
            return
        stream.is_created = True
        if stream.table.delivery == "firehose":  # only a failed creation stops such a table here
            stream.place.flow()
            stream.place.failures = 0

    def _note_changelogs(self, plan: Plan) -> None:
        """Note the widened columns of the changelogs, for Firehose's functions."""
        created = {name for name, stream in self._streams.items() if stream.is_created}
        note_changelogs(self._control, plan, created)

    def _remember(self, name: str, known: KnownColumns) -> None:
        """Store before the append which columns were seen: a replayed batch has no such event."""
        with self.noting:
            self._progress.table(name).first_seen = dict(known.first_seen)
            self._progress.save(self._control)

    def _remember_refused(self, name: str, reasons: RefusedReasons) -> None:
        """Store before the append why the table stops, for the same reason."""
        with self.noting:
            note_reasons(self.of(name), reasons)
            self._progress.save(self._control)

    def _remember_quarantined(self, name: str, refused: NewlyRefused) -> None:
        """Store the count before the quarantine's commit: a replayed batch finds them there."""
        with self.noting:
            self._progress.note_quarantined(name, refused)
            self._progress.save(self._control)
