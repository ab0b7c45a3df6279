"""Errors of clients while their server starts, stops or is dead."""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPException
from typing import TypeVar

import psycopg
from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import KafkaException

from cdclake.errors import CdcError

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


def known(read: Callable[[], Answer], unknown: Answer) -> Answer:
    """Return what a server answers, or `unknown` if it does not answer."""
    try:
        return read()
    except _NO_ANSWER:
        return unknown
