"""Deployment of one pipeline in one AWS environment, as the CDK app builds it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cdclake.config.aws_model import Aws
from cdclake.config.document import Location
from cdclake.config.literals import parse_table_key
from cdclake.config.model import PipelineFile
from cdclake.config.problems import InvalidPipeline
from cdclake.config.resolve import load_file, resolve_plan
from cdclake.config.yaml_reader import read_document
from cdclake.connectors.declared import DeclaredConnector
from cdclake.firehose.stream import DeliveryStream
from cdclake.plan import Plan, Table

PIPELINE_TAG, ENVIRONMENT_TAG = "cdclake:pipeline", "cdclake:environment"  # of every resource
# How long the buckets keep versions of deleted and overwritten objects. A file deleted by mistake
# can be restored; Iceberg itself keeps older snapshots.
RESTORABLE_DAYS = 7
RESULT_RESTORABLE_DAYS = 1  # of Athena's results: running the query again restores one
# How long the state bucket keeps reports. Most runs write one under a name that no later run uses;
# those of `verify` have rows.
REPORT_DAYS = 7
_TRIAL_SCHEDULE = "rate(1 hour)"
_POLL_SCHEDULE = "rate(15 minutes)"  # the local lake polls every five; a Glue job cannot
_DESCRIBED = re.compile(r"cdclake pipeline ([a-z0-9-]+): ")


def stack_description(pipeline: str, purpose: str) -> str:
    """Return the description of a pipeline's stack.

    >>> stack_description("shop", "tables and buckets")
    'cdclake pipeline shop: tables and buckets'
    """
    return f"cdclake pipeline {pipeline}: {purpose}"


def described_pipeline(description: str) -> str | None:
    """Return the name of the pipeline from a stack's description, None for a foreign stack.

    >>> described_pipeline(stack_description("shop", "tables and buckets"))
    'shop'
    """
    found = _DESCRIBED.match(description)
    return found and found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Plan of one environment, and the resources that it runs on."""

    plan: Plan
    aws: Aws
    environment: str | None
    file: Path
    lake_formation: bool

    @property
    def prefix(self) -> str:
        """Return the prefix of every stack and named resource; it separates environments."""
        return "-".join(filter(None, (self.plan.name, self.environment)))

    @property
    def delivers(self) -> bool:
        """Check whether Firehose streams from Kafka are deployed."""
        return bool(self.plan.deliveries) and self.aws.delivery == "on"

    @property
    def sinks(self) -> tuple[DeclaredConnector, ...]:
        """Return the deployed connectors of `connectors:`."""
        return self.plan.connectors if self.aws.sinks == "on" else ()

    @property
    def delivered(self) -> list[DeliveryStream]:
        """Return the deployed Firehose streams, those from Kafka first."""
        of_kafka = self.plan.deliveries if self.delivers else ()
        return [*of_kafka, *self.plan.put_streams]

    def refusal(self, location: Location, message: str, remedy: str) -> InvalidPipeline:
        """Return an error that only the stacks can detect, with its line and column in the file."""
        document = read_document(self.file)
        if self.environment is not None:
            document = document.overlaid(self.environment)
        return InvalidPipeline(str(self.file), [document.problem(location, message, remedy)])


def load_deployment(path: Path, environment: str | None = None) -> Deployment:
    """Load the file's deployment in `environment`; without one, the file without an overlay.

    Raises:
        InvalidPipeline: the file has problems; the error holds all of them.
        InputError: there is no such environment.
    """
    file = load_file(path, environment, deployed=True)
    return Deployment(
        plan=_planned(file),
        aws=file.aws,
        environment=environment,
        file=path,
        lake_formation=file.lake.lake_formation,
    )


def _planned(file: PipelineFile) -> Plan:
    """Return the plan with the defaults of a deployment, where the file sets nothing else.

    A stream without tables is scheduled: it only creates tables and reads heartbeats, which does
    not justify the cost of a job that always runs. So is that of a trial, every hour.
    """
    plan = resolve_plan(file)
    is_trial = file.aws.size == "trial"
    streams = any(table.delivery == "stream" for table in plan.tables)
    if "mode" not in file.stream.model_fields_set and (is_trial or not streams):
        plan = replace(plan, mode="scheduled")
    if is_trial and "apply" not in file.schedules.model_fields_set:
        plan = replace(plan, schedules={**plan.schedules, "apply": _TRIAL_SCHEDULE})
    return replace(plan, polled=tuple(_deployed_polls(file, plan.polled)))


def _deployed_polls(file: PipelineFile, polled: Iterable[Table]) -> Iterator[Table]:
    captures = {parse_table_key(key): entry.capture for key, entry in file.tables.items()}
    for table in polled:
        capture = captures[table.schema, table.table]
        is_declared = capture is None or "every" in capture.poll.model_fields_set
        polling = table.poll if is_declared else replace(table.poll, every=_POLL_SCHEDULE)
        yield replace(table, polling=polling)
