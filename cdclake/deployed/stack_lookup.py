"""Look-ups of CloudFormation stacks that may not exist yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import boto3
from botocore.exceptions import ClientError

Found = TypeVar("Found")


def found_stack(name: str) -> dict[str, Any] | None:
    """Return the description of a stack; None if it does not exist."""
    client = boto3.client("cloudformation")
    return _unless_missing(lambda: client.describe_stacks(StackName=name)["Stacks"][0])


def stack_resources(name: str) -> list[dict[str, Any]] | None:
    """Return the resources of a stack; None if it does not exist."""
    client = boto3.client("cloudformation")
    return _unless_missing(
        lambda: client.describe_stack_resources(StackName=name)["StackResources"]
    )


def _unless_missing(look_up: Callable[[], Found]) -> Found | None:
    try:
        return look_up()
    except ClientError as error:
        if "does not exist" not in error.response["Error"]["Message"]:
            raise
        return None
