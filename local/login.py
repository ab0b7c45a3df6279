"""The connector's login in the local Secrets Manager: where it is on AWS, under such a name."""

from __future__ import annotations

import json

import boto3
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.debezium.worker import PASSWORD_KEY, USER_KEY
from cdclake.plan import Plan


def keep_login(plan: Plan, password: str) -> str:
    """Keep the role's login, in place of an older one; the secret's name.

    The environment says which Secrets Manager (`local.lake.aws_environment`).
    """
    name = naming.login_secret(plan.name)
    login = json.dumps({USER_KEY: plan.source_object, PASSWORD_KEY: password})
    client = boto3.client("secretsmanager")
    try:
        client.create_secret(Name=name, SecretString=login)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceExistsException":
            raise
        client.put_secret_value(SecretId=name, SecretString=login)
    return name
