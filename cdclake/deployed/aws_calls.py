"""Calls to AWS about a deployment, whose errors become cdclake errors, or skipped checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from cdclake.check import Check, skipped
from cdclake.config.deployment import Deployment
from cdclake.errors import CdcError, ComponentFailed, InputError, NotRunning

_WHERE = "AWS_PROFILE and AWS_REGION select account and region"
# By error code: the kind of resource that is missing.
_MISSING = {"EntityNotFoundException": "job", "ResourceNotFoundException": "function"}
_NO_IDENTITY = (NoCredentialsError, NoRegionError, PartialCredentialsError, ProfileNotFound)


@contextmanager
def explained(name: str, doing: str) -> Iterator[None]:
    """Convert errors of AWS and its client in a call about `name` to CdcError with a remedy."""
    try:
        yield
    except _NO_IDENTITY as error:
        raise InputError(f"could not {doing} {name}: {error}", _WHERE) from None
    except ClientError as error:
        raise _refused(name, doing, error) from None
    except BotoCoreError as error:
        remedy = "check that this machine reaches AWS, then run this again"
        raise _failed(name, doing, error, remedy) from None


def unless_refused(name: str, check: Callable[[], Iterable[Check]]) -> list[Check]:
    """Run a check; an error of AWS or its client becomes a skipped check of this name."""
    try:
        return list(check())
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
        return [skipped(name, f"AWS answers {code}: {message}")]
    except BotoCoreError as error:
        return [skipped(name, str(error))]


def check_jobs(deployment: Deployment) -> None:
    """Raise NotRunning if no job is deployed, since the pipeline has no tables of a database."""
    if not deployment.plan.tables:
        raise NotRunning(
            f"{deployment.prefix} has no jobs to ask: its tables are those of puts and web logs",
            "read `cdclake logs --target aws`, the alarms and the dashboard, and query the tables",
        )


def _refused(name: str, doing: str, error: ClientError) -> CdcError:
    code = error.response["Error"]["Code"]
    if code in _MISSING:
        return NotRunning(
            f"no {_MISSING[code]} {name} in this account and region",
            f"deploy it, or choose another --file and --environment; {_WHERE}",
        )
    if code == "ConcurrentRunsExceededException":
        return ComponentFailed(
            f"{name} is already running", "wait until it ends, then run this again", name
        )
    if code.startswith("AccessDenied"):
        return _failed(name, doing, error, f"use a role with this permission; {_WHERE}")
    return _failed(name, doing, error, "fix the error that AWS reports, then run this again")


def _failed(name: str, doing: str, error: Exception, remedy: str) -> ComponentFailed:
    return ComponentFailed(f"could not {doing} {name}: {error}", remedy, name)
