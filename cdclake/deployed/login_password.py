"""Check of the connector's password: whether the role has it, and whether its rotation is overdue.

Nothing rotates it by a schedule (decision 59).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import boto3

from cdclake import naming
from cdclake.check import Check, failed, passed, warned
from cdclake.config.deployment import Deployment
from cdclake.deployed.stack_lookup import stack_resources

# Security Hub's control SecretsManager.4 expects a rotation in this time by default.
MAX_AGE_DAYS = 90
_NAME = "connector password"
_PREPARATION = "Custom::CdclakeSource"
_RUNBOOK = "`cdclake runbook rotate-passwords`"


def login_password(deployment: Deployment) -> Iterator[Check]:
    """Compare when the secret got its password with now, and with when the role got it."""
    prepared = _prepared(f"{deployment.prefix}-cdc")
    if prepared is None:
        yield passed(_NAME, "none yet: the first deployment generates it")
        return
    secret = naming.login_secret(deployment.prefix)
    written = _written(secret)
    days = (datetime.now(UTC) - written).days
    if written > prepared:
        yield failed(
            _NAME,
            f"{secret} has one of {written:%Y-%m-%d %H:%M}, and the role an earlier one",
            f"increase `aws: connect: login_version`, and deploy {deployment.prefix}-cdc",
        )
    elif days > MAX_AGE_DAYS:
        yield warned(_NAME, f"it is {days} days old", f"rotate it as {_RUNBOOK} describes")
    else:
        yield passed(_NAME, f"it is {days} days old")


def _prepared(stack: str) -> datetime | None:
    """Return when the preparation last ran; None if the stack does not exist or has none."""
    found = stack_resources(stack) or []
    times = [each["Timestamp"] for each in found if each["ResourceType"] == _PREPARATION]
    return max(times, default=None)


def _written(secret: str) -> datetime:
    """Return when the secret's current value was written."""
    client = boto3.client("secretsmanager")
    # Those without a label are left out, and a secret has at most 20 labels: one page has all.
    found = client.list_secret_version_ids(SecretId=secret, MaxResults=100)["Versions"]
    [written] = [each["CreatedDate"] for each in found if "AWSCURRENT" in each["VersionStages"]]
    current: datetime = written
    return current
