"""Erasure from a deployed lake, for a job with access to all of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlparse

import boto3
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.debezium.worker import SALT_KEY
from cdclake.firehose.erased_rows import REGISTER_SECONDS
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.erasure.stored_objects import Leftover
from cdclake.jobs.forget.erasure_position import erasure_position
from cdclake.jobs.forget.lake_objects import LakeObjects
from cdclake.jobs.forget.marker_records import MarkerRecords
from cdclake.jobs.forget.version_search import search_buckets
from cdclake.jobs.operations.deployed_backend import DeployedBackend
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.job_reader import job_reader
from cdclake.jobs.runtime.arguments import brokers_of
from cdclake.jobs.runtime.secrets import secret_value
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.runtime.source import deployed_dsn
from cdclake.jobs.table_jobs.deployment_jobs import DeploymentJobs
from cdclake.plan import Plan, Table


class DeployedErasureBackend:
    """One deployed pipeline, from a job's arguments; `resources` closes what it opens."""

    def __init__(self, plan: Plan, arguments: Mapping[str, str], resources: ExitStack) -> None:
        self.plan = plan
        self.control = ObjectStore(arguments["control"])
        self.operations = TableOperations(DeployedBackend(plan, arguments, resources))
        self._arguments = arguments
        self._resources = resources

    @cached_property
    def dsn(self) -> str:
        """DSN of the source."""
        return self._resources.enter_context(deployed_dsn(self._arguments))

    @cached_property
    def salt(self) -> str:
        """Salt of the pipeline's masks."""
        return secret_value(self._arguments["mask_salt"], SALT_KEY)

    @cached_property
    def objects(self) -> LakeObjects:
        """The objects of the tables."""
        warehouse = self._spark.conf.get(f"spark.sql.catalog.{naming.CATALOG}.warehouse")
        assert warehouse is not None
        return LakeObjects(boto3.client("s3"), boto3.client("glue"), self.plan, warehouse)

    @property
    def state_bucket(self) -> str:
        """Bucket of the control objects, and of Firehose's failed records."""
        return urlparse(self._arguments["control"]).netloc

    @cached_property
    def reader(self) -> Reader:
        """DuckDB reader of the tables."""
        spill = self._resources.enter_context(TemporaryDirectory())
        return job_reader(self._spark, self.plan, Path(spill))

    @cached_property
    def _spark(self) -> SparkSession:
        return open_session(self._arguments["JOB_NAME"])

    def position(self) -> str:
        """Return a position between all transactions until now and all later ones."""
        brokers = brokers_of(self._arguments)
        topic = MarkerRecords(self._spark, brokers, self.plan.heartbeat_rows_topic)
        return erasure_position(self.dsn, topic)

    def delivery_seconds(self, table: Table) -> float:
        """Return the time within which Firehose appends events that it has decoded."""
        [stream] = [each for each in self.plan.deliveries if table.name in each.tables]
        return REGISTER_SECONDS + stream.function_seconds + stream.buffer_seconds

    def run_job(self, job: str, tables: Sequence[str]) -> dict[str, Any]:
        """Run a job of this deployment over these tables to its end, and return its report."""
        prefix = self._arguments["JOB_NAME"].removesuffix(f"-{naming.FORGET_JOB}")
        jobs = DeploymentJobs(prefix=prefix, starter=naming.FORGET_JOB, control=self.control)
        return jobs.run_over(job, tables)

    def restart_stream(self) -> None:
        """Have the stream end after its batch; its keeper starts it again within five minutes.

        A scheduled stream ends by itself. The deployment in the order stays: the keeper would put
        it back, perhaps before the stream has read the order. If the write is refused, the keeper
        or `cdclake pause` has just ordered another deployment, which ends the stream as well.
        """
        if self.plan.mode == "always_on" and self.plan.tables:
            stored = self.control.read(naming.STREAM_ORDER)
            order = {"deployment": None} if stored is None else stored.content
            restarted = {**order, "restart": uuid.uuid4().hex}
            etag = None if stored is None else stored.etag
            self.control.write_if(naming.STREAM_ORDER, restarted, etag)

    def redact(self, sought: SoughtValues) -> list[str]:
        """Change nothing: events of CloudWatch Logs cannot be changed, and expire."""
        del sought
        return []

    def search(self, sought: SoughtValues, own: tuple[str, ...]) -> set[Leftover]:
        """Search every version in the buckets of tables and of state."""
        buckets = dict.fromkeys((self.objects.bucket, self.state_bucket))
        return search_buckets(self._spark, buckets, sought.values, own)
