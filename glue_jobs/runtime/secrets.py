"""Secrets passed by reference, in the syntax that Kafka Connect resolves as well."""

from __future__ import annotations

import json
import re
from pathlib import Path

import boto3

from cdclake.debezium.worker import PROVIDER
from cdclake.errors import InputError

_REFERENCE = re.compile(rf"\$\{{(file|{PROVIDER}):(.+):([^:]+)\}}")


def resolve_secret(reference: str) -> str:
    """Return the value of `${file:PATH:KEY}` or `${secretsmanager:NAME:KEY}`.

    Raises InputError, without the value, if it is missing.
    """
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise InputError(
            "the job expects a reference to a secret, but got another value",
            f"pass it as ${{file:PATH:KEY}} or ${{{PROVIDER}:NAME:KEY}}",
        )
    kind, place, key = found.groups()
    return secret_value(place, key) if kind == PROVIDER else _value_in_file(place, key)


def secret_value(name: str, key: str) -> str:
    """Return the value under `key` in the named secret of Secrets Manager."""
    found = boto3.client("secretsmanager").get_secret_value(SecretId=name)
    return str(json.loads(found["SecretString"])[key])


def _value_in_file(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and name == key:
            return value
    raise InputError(f"{path} has no {key!r}", "restore this key in the secrets file")
