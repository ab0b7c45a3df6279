"""The deployed Lambda functions that operators call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.deployed.aws_calls import explained
from cdclake.errors import ComponentFailed
from cdclake.redrive.put_service import PUTS_REPEATED

# Wait as long as Lambda lets a call run, and never retry it silently.
_CALL = Config(read_timeout=910, retries={"total_max_attempts": 1})


class DeployedFunction:
    """Function of a deployment, called and awaited."""

    def __init__(self, name: str) -> None:
        self.name = name
        with explained(name, "reach Lambda for"):
            self._lambda = boto3.client("lambda", config=_CALL)

    def variable(self, name: str) -> str:
        """Return a variable of the function's environment."""
        with explained(self.name, "read the settings of"):
            found = self._lambda.get_function_configuration(FunctionName=self.name)
        return str(found["Environment"]["Variables"][name])

    def call(self, event: dict[str, Any], remedy: str, *, if_late: str = "") -> dict[str, Any]:
        """Return the function's answer; raise ComponentFailed with the remedy if it failed.

        `if_late` is the remedy if the function ran longer than Lambda lets it.
        """
        with explained(self.name, "call"):
            called = self._lambda.invoke(FunctionName=self.name, Payload=json.dumps(event).encode())
            answer: dict[str, Any] = json.loads(called["Payload"].read())
        if "FunctionError" in called:
            message = str(answer.get("errorMessage"))
            if if_late and "Task timed out" in message:
                remedy = if_late
            raise ComponentFailed(f"{self.name} failed: {message}", remedy, component=self.name)
        return answer


def deployed_redrives(file: Path, environment: str | None) -> list[DeployedRedrive]:
    """Return the redrive functions of the deployment for a pipeline file and an environment.

    A file without tables that Firehose delivers has none. Raise InvalidPipeline or InputError if
    the file or the environment is invalid.
    """
    deployment = load_deployment(file, environment)
    redrives = []
    if deployment.plan.deliveries:
        redrives.append(DeployedRedrive(naming.redrive_function(deployment.prefix)))
    if deployment.plan.put_streams:
        name = naming.redrive_puts_function(deployment.prefix)
        redrives.append(DeployedRedrive(name, repeats=PUTS_REPEATED))
    return redrives


class DeployedRedrive:
    """Deployed function that redrives a page per call."""

    def __init__(self, name: str, *, repeats: str = "") -> None:
        self._function, self._repeats = DeployedFunction(name), repeats

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the function's answer; ComponentFailed if it failed, without loss of records."""
        remedy = "nothing is lost: find the cause in its log, fix it, then run this again"
        return self._function.call(event, f"{remedy}{self._repeats}")
