"""Credentials of the local servers: random, one set per lake home, in secrets.properties."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdclake.errors import InputError
from cdclake.local.process.home import Home

USER = "cdclake"


@dataclass(frozen=True, slots=True)
class Login:
    """User and password of a client, or AWS's key id and secret."""

    user: str
    password: str = field(repr=False)


def aws_keys(home: Home) -> Login:
    """Return the key pair of the local S3, Glue, Secrets Manager, Kinesis and Firehose."""
    return Login(_created(home, "aws_access_key_id"), _created(home, "aws_secret_access_key"))


def kafka_login(home: Home) -> Login:
    """Return the login of all of Kafka's clients."""
    return Login(USER, _created(home, "kafka_password"))


def connect_login(home: Home) -> Login:
    """Return the login of Connect's REST API."""
    return Login(USER, _created(home, "connect_password"))


def _created(home: Home, name: str) -> str:
    if name not in home.secret_names():
        raise InputError(
            f"the lake in {home.path} was started by an earlier version, without {name}",
            "run `cdclake up` again, which creates it and restarts the servers",
        )
    return home.secret(name)
