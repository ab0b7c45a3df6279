"""The lake of a deployment: its control objects and its tables, with the caller's credentials."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import boto3

from cdclake import naming
from cdclake.config.deployment import Deployment, load_deployment
from cdclake.deployed.aws_calls import check_jobs, explained
from cdclake.iceberg.widening import with_widened
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.reader.catalog import Catalog
from cdclake.plan import Plan
from cdclake.source_notes import read_widened

if TYPE_CHECKING:
    from cdclake.jobs.reader.duck import Reader


class DeployedLake:
    """Lake of the deployment for a pipeline file and an environment.

    Its buckets are found in the arguments of a deployed job, so the file needs no names.
    """

    def __init__(self, file: Path, environment: str | None) -> None:
        """Raise InvalidPipeline or InputError if the file or the environment is invalid."""
        self.deployment: Deployment = load_deployment(file, environment)
        self.name = naming.glue_job_name(self.deployment.prefix, naming.STREAM_JOB)
        with explained(self.name, "reach Glue for"):
            self._glue = boto3.client("glue")

    @cached_property
    def arguments(self) -> dict[str, str]:
        """Arguments of the deployed stream; NotRunning if there is no such job."""
        check_jobs(self.deployment)
        with explained(self.name, "read the arguments of"):
            job = self._glue.get_job(JobName=self.name)["Job"]
        return dict(job["DefaultArguments"])

    @cached_property
    def control(self) -> ObjectStore:
        """Control objects of the deployment."""
        return ObjectStore(self.arguments["--control"])

    @cached_property
    def plan(self) -> Plan:
        """Plan with the types that the source has widened since it was deployed."""
        with explained(self.name, "read the control objects of"):
            return with_widened(self.deployment.plan, read_widened(self.control))

    @cached_property
    def catalog(self) -> Catalog:
        """Catalog of the deployment's tables; unlike a reader it needs no extra."""
        return Catalog(self._glue, boto3.client("s3"), self.plan.lake_database)

    def reader(self, spill: Path) -> Reader:
        """Return a DuckDB reader of the tables, which spills into this folder."""
        from cdclake.jobs.reader.duck import Reader  # needs an extra

        settings = dict(
            setting.split("=", 1) for setting in self.arguments["--conf"].split(" --conf ")
        )
        warehouse = settings[f"spark.sql.catalog.{naming.CATALOG}.warehouse"]
        return Reader(
            plan=self.plan,
            s3=boto3.client("s3").meta.endpoint_url,
            glue=self._glue.meta.endpoint_url,
            bucket=urlparse(warehouse).netloc,
            spill=spill,
            control=self.control,
        )
