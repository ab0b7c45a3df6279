"""Erasure from a running local lake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cdclake.activity import step
from cdclake.firehose.erased_rows import REGISTER_SECONDS
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.erasure.stored_objects import Leftover
from cdclake.jobs.forget.erasure_position import erasure_position
from cdclake.jobs.forget.lake_objects import LakeObjects
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.jobs.reader.duck import Reader
from cdclake.local.firehose.delivery import LONGEST_BUFFER_S, LONGEST_CALL_S
from cdclake.local.forget.heartbeat_records import HeartbeatRecords
from cdclake.local.forget.log_redaction import redact_logs
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.source_credentials import keep_salt
from cdclake.local.lake.spark_jobs import STREAM, run_job
from cdclake.local.lake.temporary_files import remove_temporary_files
from cdclake.local.operations_backend import local_operations, run_stream
from cdclake.local.reader.duck import lake_reader
from cdclake.local.trace.stored_row import search_lake
from cdclake.plan import Plan, Table

_STREAM_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class LocalErasureBackend:
    """Local lake, as an erasure sees it."""

    lake: LocalLake

    @property
    def plan(self) -> Plan:
        """The lake's plan."""
        return self.lake.plan

    @property
    def control(self) -> ObjectStore:
        """The lake's control objects."""
        return self.lake.control

    @cached_property
    def objects(self) -> LakeObjects:
        """The objects of the tables."""
        s3, glue = (self.lake.client(service) for service in ("s3", "glue"))
        return LakeObjects(s3, glue, self.lake.plan, self.lake.warehouse_uri)

    @property
    def state_bucket(self) -> str:
        """Bucket of the control objects, and of Firehose's failed records."""
        return self.lake.bucket

    @property
    def reader(self) -> Reader:
        """DuckDB reader of the tables."""
        return lake_reader(self.lake)

    @property
    def operations(self) -> TableOperations:
        """Requests to the stream."""
        return local_operations(self.lake)

    @cached_property
    def salt(self) -> str:
        """Salt of the pipeline's masks; it is stored where the stream reads it."""
        salt = self.lake.mask_salt
        keep_salt(self.lake.plan, salt)
        return salt

    def position(self) -> str:
        """Return a position between all transactions until now and all later ones."""
        topic = HeartbeatRecords(self.lake.kafka, self.lake.plan.heartbeat_rows_topic)
        return erasure_position(self.lake.dsn, topic)

    def delivery_seconds(self, table: Table) -> float:
        """Return the time within which the local Firehose appends events that it has decoded."""
        [stream] = [each for each in self.plan.deliveries if table.name in each.tables]
        buffer_s = min(stream.buffer_seconds, LONGEST_BUFFER_S)
        return REGISTER_SECONDS + LONGEST_CALL_S + buffer_s

    def run_job(self, job: str, tables: Sequence[str]) -> dict[str, Any]:
        """Run a job over these tables or copies to its end, and return its report."""
        return run_job(self.lake, job, [*tables])

    def restart_stream(self) -> None:
        """Start the stream again without temporary files of ended processes, which have keys.

        A stream that is not to run stays stopped.
        """
        streams = stack.wants(self.lake.home, STREAM)
        with (
            step("restart the stream" if streams else "remove temporary files"),
            self.lake.home.changing(),
        ):
            if streams:
                stack.stop_component(self.lake.home, STREAM)
            remove_temporary_files(self.lake.home)
            if streams:
                run_stream(self.lake, _STREAM_TIMEOUT_S)

    def redact(self, sought: SoughtValues) -> list[str]:
        """Overwrite values in log files; return their names."""
        return redact_logs(self.lake.home, sought)

    def search(self, sought: SoughtValues, own: tuple[str, ...]) -> set[Leftover]:
        """Search the buckets and the files of the lake's folder."""
        return set(search_lake(self.lake, sought, own))
