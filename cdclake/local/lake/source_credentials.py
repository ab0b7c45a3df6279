"""The connector's secrets in the local Secrets Manager, as on AWS."""

from __future__ import annotations

import json

import boto3
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.debezium.worker import PASSWORD_KEY, SALT_KEY, USER_KEY
from cdclake.plan import Plan


def keep_login(plan: Plan, password: str, *, user: str = "") -> str:
    """Store the login of the role or of `user`, replacing an older one; return the secret's name.

    The environment selects the Secrets Manager (`cdclake.local.lake.lake.aws_environment`).
    """
    login = {USER_KEY: user or plan.source_object, PASSWORD_KEY: password}
    return _keep(naming.login_secret(plan.name), login)


def keep_salt(plan: Plan, salt: str) -> str:
    """Store the salt of masks, and return the secret's name."""
    return _keep(naming.salt_secret(plan.name), {SALT_KEY: salt})


def _keep(name: str, values: dict[str, str]) -> str:
    content = json.dumps(values)
    client = boto3.client("secretsmanager")
    try:
        client.create_secret(Name=name, SecretString=content)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceExistsException":
            raise
        client.put_secret_value(SecretId=name, SecretString=content)
    return name
