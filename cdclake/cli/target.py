"""Where a verb works: on the lake here, or on what a file and an environment have deployed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.cli.aws_jobs import DeployedJob


class Target(StrEnum):
    """Where."""

    LOCAL = "local"
    AWS = "aws"


TargetOption = Annotated[
    Target, typer.Option(help="aws: in the deployment of --file and --environment.")
]
FileOption = Annotated[
    Path | None, typer.Option(help="Of --target aws: the pipeline file that is deployed.")
]
EnvironmentOption = Annotated[
    str | None, typer.Option(help="Of --target aws: the environment that is deployed.")
]


def check_local(file: Path | None, environment: str | None) -> None:
    """InputError if somebody speaks of a deployment without meaning it."""
    if file is not None or environment is not None:
        raise InputError("--file and --environment are of --target aws", "add --target aws")


def deployed_file(file: Path | None) -> Path:
    """The pipeline file of the deployment; InputError if none says which one is meant."""
    if file is None:
        raise InputError("it is not said which deployment", "add --file FILE [--environment NAME]")
    return file


def deployed_job(file: Path | None, environment: str | None, name: str) -> DeployedJob:
    """The deployment's job; InputError if no file says which deployment."""
    from cdclake.cli.aws_jobs import DeployedJob

    return DeployedJob(deployed_file(file), environment, name)
