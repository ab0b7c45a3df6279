"""The target of a verb: the local lake, or the deployment of a file and an environment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.deployed.aws_jobs import DeployedJob
    from cdclake.jobs.reader.duck import Reader
    from cdclake.local.quarantined_events import Quarantine


class Target(StrEnum):
    """Target of a verb."""

    LOCAL = "local"
    AWS = "aws"


TargetOption = Annotated[
    Target,
    typer.Option(help="local: the local lake; aws: the deployment of --file and --environment."),
]
FileOption = Annotated[
    Path | None, typer.Option(help="Pipeline file of the deployment (with --target aws).")
]
EnvironmentOption = Annotated[
    str | None, typer.Option(help="Environment of the deployment (with --target aws).")
]

# Of commands that read a deployment's file without a target.
DeploymentFile = Annotated[Path, typer.Argument(help="Pipeline file of the deployment.")]
DeploymentEnvironment = Annotated[str | None, typer.Option(help="Environment of the deployment.")]


def check_local(file: Path | None, environment: str | None) -> None:
    """Raise InputError if --file or --environment is given without --target aws."""
    if file is not None or environment is not None:
        raise InputError(
            "--file and --environment require --target aws",
            "add --target aws; unlike in `cdclake plan`, --environment does not imply it",
        )


def deployed_file(file: Path | None) -> Path:
    """Return the pipeline file of the deployment; InputError if none is given."""
    if file is None:
        raise InputError(
            "--file is required with --target aws", "add --file FILE [--environment NAME]"
        )
    return file


def deployment_options(file: Path | None, environment: str | None) -> str:
    """Return the options that a command needs for this deployment."""
    given = "" if environment is None else f" --environment {shlex.quote(environment)}"
    return f" --target aws --file {shlex.quote(str(file))}{given}"


def deployed_job(file: Path | None, environment: str | None, name: str) -> DeployedJob:
    """Return the deployment's job; InputError if no file is given."""
    from cdclake.deployed.aws_jobs import DeployedJob

    return DeployedJob(deployed_file(file), environment, name)


@contextmanager
def lake_reader_of(target: Target, file: Path | None, environment: str | None) -> Iterator[Reader]:
    """Yield a reader of the target's lake, which spills into a folder for this command."""
    if target is Target.AWS:
        from cdclake.deployed.deployed_lake import DeployedLake

        lake = DeployedLake(deployed_file(file), environment)
        with TemporaryDirectory() as spill:
            yield lake.reader(Path(spill))
        return
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.reader.duck import lake_reader

    check_local(file, environment)
    yield lake_reader(open_lake(Home.from_environment()))


@contextmanager
def quarantine_of(
    target: Target, file: Path | None, environment: str | None
) -> Iterator[Quarantine]:
    """Yield the quarantine of the target's lake."""
    from cdclake.local.quarantined_events import Quarantine

    if target is Target.AWS:
        options = deployment_options(file, environment)
        with lake_reader_of(target, file, environment) as reader:
            yield Quarantine(reader.plan, reader, str(file), "deploy it", options)
        return
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.reader.duck import lake_reader

    check_local(file, environment)
    lake = open_lake(Home.from_environment())
    used = lake.state.pipeline_file
    applying = f"run `cdclake up {shlex.quote(used)}`"
    yield Quarantine(lake.plan, lake_reader(lake), used, applying)
