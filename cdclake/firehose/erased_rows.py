"""Rows of erased keys, which the functions that write for Firehose must not bring back.

A container reads the register of erased keys once per `REGISTER_SECONDS`: an erasure holds for the
calls that begin that long after it was registered. A call that cannot read the register fails.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from cdclake import naming
from cdclake.control_reader import ControlReader
from cdclake.debezium.changelog_rows import Event, Place, position_of
from cdclake.debezium.event_parts import row_image
from cdclake.debezium.record_key import comparable_key, key_in
from cdclake.debezium.refusals import RefusedEvent
from cdclake.debezium.worker import SALT_KEY
from cdclake.erasure_register import ErasureRegister
from cdclake.erasures import ErasedKeys
from cdclake.plan import Table

REGISTER_SECONDS = 30.0

Erased = Mapping[str, ErasedKeys]  # by table
ReadErased = Callable[[], Erased]


class ErasedEvent(Exception):
    """Event of an erased key that is older than the erasure."""


class RecentRegister:
    """Erased keys of a pipeline, read again when they are older than `REGISTER_SECONDS`."""

    def __init__(self, register: ErasureRegister, clock: Callable[[], float] = time.time) -> None:
        # The default is the wall clock: a monotonic one may stop while Lambda freezes a container.
        self._register, self._clock = register, clock
        self._read_at, self._erased = float("-inf"), dict[str, ErasedKeys]()

    @staticmethod
    def of(client: Callable[[str], Any], *, control: str, salt: str) -> RecentRegister:
        """Return the register below the URI `control`; `client` makes a boto3 client of a service.

        `salt` is the name or the ARN of the secret, which is only read for an existing register.
        """

        @cache
        def read_salt() -> str:
            found = client("secretsmanager").get_secret_value(SecretId=salt)
            return str(json.loads(found["SecretString"])[SALT_KEY])

        return RecentRegister(ErasureRegister(ControlReader(client("s3"), control), read_salt))

    def read(self) -> Erased:
        """Return the erased keys; raise an error if they are too old and cannot be read."""
        now = self._clock()
        if not 0 <= now - self._read_at < REGISTER_SECONDS:
            self._erased = dict(self._register.read())
            self._read_at = now
        return self._erased


def check_row(table: Table, row: Mapping[str, Any], erased: Erased) -> None:
    """Raise ErasedEvent if the changelog's row is of an erased key, and older than its erasure."""
    keys = erased.get(table.name)
    if keys is None:
        return
    position = row.get(naming.POSITION)
    key = comparable_key(table, (row.get(name) for name in table.key))
    if type(position) is str and keys.refuses(key, position):
        raise ErasedEvent


def check_event(table: Table, event: Event, place: Place, erased: Erased) -> None:
    """Do the same for an event that cannot be decoded; it stays without a readable position."""
    keys = erased.get(table.name)
    if keys is None:
        return
    try:
        position = position_of(event, place)
    except RefusedEvent:
        return
    if keys.refuses(key_in(table, row_image(event)), position):
        raise ErasedEvent
