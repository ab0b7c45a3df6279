"""One pipeline in one environment of AWS: what the CDK app builds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cdclake.config.aws_model import Aws
from cdclake.config.document import Location
from cdclake.config.model import PipelineFile
from cdclake.config.problems import InvalidPipeline
from cdclake.config.resolve import load_file, resolve_plan
from cdclake.config.yaml_reader import read_document
from cdclake.firehose.stream import DeliveryStream
from cdclake.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The plan, which is the same everywhere, and what this environment gives it to run on."""

    plan: Plan
    aws: Aws
    environment: str | None
    file: Path

    @property
    def prefix(self) -> str:
        """Begins the name of every stack and named resource, so that environments stay apart."""
        return "-".join(filter(None, (self.plan.name, self.environment)))

    @property
    def delivers(self) -> bool:
        """Whether streams of Firehose from Kafka are deployed."""
        return bool(self.plan.deliveries) and self.aws.delivery == "on"

    @property
    def delivered(self) -> list[DeliveryStream]:
        """The streams of Firehose that are deployed, those from Kafka first."""
        of_kafka = self.plan.deliveries if self.delivers else ()
        return [*of_kafka, *(logs.stream for logs in self.plan.web_logs)]

    def refusal(self, location: Location, message: str, remedy: str) -> InvalidPipeline:
        """What only the stacks can see of the file, said as all else: with its line and column."""
        document = read_document(self.file)
        if self.environment is not None:
            document = document.overlaid(self.environment)
        return InvalidPipeline(str(self.file), [document.problem(location, message, remedy)])


def load_deployment(path: Path, environment: str | None = None) -> Deployment:
    """The file's deployment in `environment`; without one, the file as it stands.

    Raises `InvalidPipeline` with every problem, `InputError` if there is no such environment.
    """
    file = load_file(path, environment, deployed=True)
    return Deployment(plan=_planned(file), aws=file.aws, environment=environment, file=path)


def _planned(file: PipelineFile) -> Plan:
    """The plan; without a table to stream, the stream only makes tables and reads heartbeats.

    A job that always runs would be dear for that, so it begins by schedule unless the file says
    otherwise.
    """
    plan = resolve_plan(file)
    streams = any(table.delivery == "stream" for table in plan.tables)
    if streams or "mode" in file.stream.model_fields_set:
        return plan
    return replace(plan, mode="scheduled")
