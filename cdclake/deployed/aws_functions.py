"""The deployed Lambda functions that operators call."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    ConnectionClosedError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.deployed.aws_calls import explained
from cdclake.errors import ComponentFailed
from cdclake.redrive.put_service import PUTS_REPEATED

# Wait as long as Lambda lets a call run, and never retry it silently.
_CALL = Config(read_timeout=910, retries={"total_max_attempts": 1}, tcp_keepalive=True)
# A NAT gateway drops a connection that is idle for 350 s; by default Linux probes after 7,200 s.
_KEEP_ALIVE_S = 60
if sys.platform == "darwin":
    _KEEP_ALIVE = socket.TCP_KEEPALIVE
else:
    _KEEP_ALIVE = socket.TCP_KEEPIDLE
# Errors after which the function may have run: its answer is lost.
_LOST = (ConnectionClosedError, IncompleteReadError, ReadTimeoutError, ResponseStreamingError)


class DeployedFunction:
    """Function of a deployment, called and awaited."""

    def __init__(self, name: str) -> None:
        self.name = name
        with explained(name, "reach Lambda for"):
            self._lambda = lambda_client()

    def variable(self, name: str) -> str:
        """Return a variable of the function's environment."""
        with explained(self.name, "read the settings of"):
            found = self._lambda.get_function_configuration(FunctionName=self.name)
        return str(found["Environment"]["Variables"][name])

    def call(
        self, event: dict[str, Any], remedy: str, *, if_lost: str, if_late: str = ""
    ) -> dict[str, Any]:
        """Return the function's answer; raise ComponentFailed with the remedy if it failed.

        `if_lost` is the remedy if the connection ended before the answer, and `if_late` if the
        function ran longer than Lambda lets it.
        """
        payload = json.dumps(event).encode()
        with explained(self.name, "call"):
            try:
                called = self._lambda.invoke(FunctionName=self.name, Payload=payload)
                answer: dict[str, Any] = json.loads(called["Payload"].read())
            except _LOST as error:
                message = f"lost the connection to {self.name} before it answered: {error}"
                raise ComponentFailed(message, if_lost, component=self.name) from None
        if "FunctionError" in called:
            message = str(answer.get("errorMessage"))
            if if_late and "Task timed out" in message:
                remedy = if_late
            raise ComponentFailed(f"{self.name} failed: {message}", remedy, component=self.name)
        return answer


def lambda_client() -> Any:
    """Return a client of Lambda whose connections stay open during long calls."""
    client = boto3.client("lambda", config=_CALL)
    # No setting of botocore has the interval: https://github.com/boto/botocore/issues/2916.
    options = client._endpoint.http_session._socket_options
    options.append((socket.IPPROTO_TCP, _KEEP_ALIVE, _KEEP_ALIVE_S))
    return client


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
        again = f"then run this again{self._repeats}"
        return self._function.call(
            event,
            f"nothing is lost: find the cause in its log, fix it, {again}",
            if_lost="no record is lost, but the function may still be running: wait until its log"
            f" shows the end of the call, at most 15 minutes, {again}",
        )
