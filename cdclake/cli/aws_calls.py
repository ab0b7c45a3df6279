"""Calls to AWS about something of a deployment, whose errors are said in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from cdclake.errors import CdcError, ComponentFailed, InputError, NotRunning

_WHERE = "AWS_PROFILE and AWS_REGION say which account and region"
# What is missing when a service says so.
_MISSING = {"EntityNotFoundException": "job", "ResourceNotFoundException": "function"}
_NOBODY = (NoCredentialsError, NoRegionError, PartialCredentialsError, ProfileNotFound)


@contextmanager
def explained(name: str, doing: str) -> Iterator[None]:
    """Whatever AWS or its client says to a call about `name`, with what to do."""
    try:
        yield
    except _NOBODY as error:
        raise InputError(f"could not {doing} {name}: {error}", _WHERE) from None
    except ClientError as error:
        raise _refused(name, doing, error) from None
    except BotoCoreError as error:
        remedy = "see whether this machine reaches AWS, then run this again"
        raise _failed(name, doing, error, remedy) from None


def _refused(name: str, doing: str, error: ClientError) -> CdcError:
    code = error.response["Error"]["Code"]
    if code in _MISSING:
        return NotRunning(
            f"there is no {_MISSING[code]} {name} in this account and region",
            f"deploy it, or name another --file and --environment; {_WHERE}",
        )
    if code == "ConcurrentRunsExceededException":
        return ComponentFailed(
            f"{name} runs already", "wait for its end, then run this again", name
        )
    if code.startswith("AccessDenied"):
        return _failed(name, doing, error, f"sign in as somebody who may; {_WHERE}")
    return _failed(name, doing, error, "read what AWS says, then run this again")


def _failed(name: str, doing: str, error: Exception, remedy: str) -> ComponentFailed:
    return ComponentFailed(f"could not {doing} {name}: {error}", remedy, name)
