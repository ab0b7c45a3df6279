"""Errors of clients while their server starts, stops or is dead."""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPException
from typing import TypeVar

import psycopg
from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import KafkaException

from cdclake.errors import CdcError, ComponentFailed
from cdclake.local.process import supervisor_client
from cdclake.local.process.home import Home

Answer = TypeVar("Answer")
_NO_ANSWER = (
    OSError,
    HTTPException,
    KafkaException,
    BotoCoreError,
    ClientError,
    psycopg.Error,
    CdcError,
)


def dead_component(home: Home, error: Exception) -> ComponentFailed | None:
    """Return the failure of the lake's dead components, if they explain the error of a client."""
    if not isinstance(error, _NO_ANSWER):
        return None
    seen = supervisor_client.observe(home)
    dead = [each.name for each in seen.components if each.name not in seen.living()]
    if not dead:
        return None
    reason = home.without_secrets(" ".join(str(error).split()))
    return ComponentFailed(f"down: {', '.join(dead)} ({reason})", "run `cdclake up`", dead[0])


def answer_or_unknown(read: Callable[[], Answer], unknown: Answer) -> Answer:
    """Return what a server answers, or `unknown` if it does not answer."""
    try:
        return read()
    except _NO_ANSWER:
        return unknown
