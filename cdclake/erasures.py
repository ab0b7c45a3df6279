"""Register of erased keys: a keyed hash of each, with the position of its erasure.

An event of an erased key below that position is refused, wherever it comes from: another reading of
Kafka, a gap or a replay. One above it is of a new row with the same key. The register names no key:
only who knows the salt can test one.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cdclake.errors import InputError

_PURPOSE = b"cdclake erasures"  # the salt is also that of masks
_FINGERPRINT = b"cdclake erasures fingerprint"
_FINGERPRINT_DIGITS = 16


@dataclass(frozen=True, slots=True)
class KeyHash:
    """Keyed hash of one table's keys."""

    table: str
    secret: bytes

    @staticmethod
    def of(table: str, salt: str) -> KeyHash:
        """Return the hash under the pipeline's salt."""
        return KeyHash(table, hmac.digest(salt.encode(), _PURPOSE, "sha256"))

    def digest(self, values: Sequence[Any]) -> str:
        """Return the hash of a key, whose values are a `comparable_key`; -0.0 is 0.0.

        >>> KeyHash.of("orders", "s").digest([1]) == KeyHash.of("orders", "s").digest(["1"])
        False
        """
        parts = (value + 0.0 if isinstance(value, float) else value for value in values)
        text = json.dumps([self.table, *parts], ensure_ascii=False, default=str)
        return hmac.digest(self.secret, text.encode("utf-8", "surrogatepass"), "sha256").hex()

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the secret: another salt gives another one."""
        digest = hmac.digest(self.secret, _FINGERPRINT, "sha256").hex()
        return digest[:_FINGERPRINT_DIGITS]


@dataclass(frozen=True, slots=True)
class Erasures:
    """Content of a table's register: hashes of keys, and the positions of their erasures."""

    fingerprint: str
    positions: Mapping[str, str] = field(default_factory=dict)

    def added(self, hashes: Sequence[str], position: str) -> Erasures:
        """Return the register with these keys; of two erasures of a key the later one counts."""
        positions = dict(self.positions)
        for each in hashes:
            positions[each] = max(position, positions.get(each, ""))
        return Erasures(self.fingerprint, positions)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the control object."""
        return {"fingerprint": self.fingerprint, "positions": dict(self.positions)}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Erasures:
        """Parse the content of the control object."""
        return Erasures(content["fingerprint"], content["positions"])


@dataclass(frozen=True)
class ErasedKeys:
    """Erased keys of one table, and their hash."""

    hashed: KeyHash
    positions: Mapping[str, str]  # by hash: no event below it may come back

    @staticmethod
    def of(table: str, salt: str, erasures: Erasures) -> ErasedKeys:
        """Return the keys; raise InputError if they were hashed with another salt."""
        return ErasedKeys.checked(KeyHash.of(table, salt), erasures)

    @staticmethod
    def checked(hashed: KeyHash, erasures: Erasures) -> ErasedKeys:
        """Return the keys of a register; raise InputError if it is of another salt."""
        if hashed.fingerprint != erasures.fingerprint:
            raise InputError(
                f"the erased keys of {hashed.table} were hashed with another salt, so their events"
                " cannot be recognized",
                "restore the salt that the pipeline had when they were erased",
            )
        return ErasedKeys(hashed, erasures.positions)

    @cached_property
    def newest(self) -> str:
        """Greatest position of an erasure: no event above it is refused."""
        return max(self.positions.values(), default="")

    def erased_at(self, key: Sequence[Any] | None) -> str:
        """Return the position of the key's erasure; "" if it is none, or is not erased."""
        return "" if key is None else self.positions.get(self.hashed.digest(key), "")

    def refuses(self, key: Sequence[Any] | None, position: str) -> bool:
        """Check whether an event is older than the erasure of its key; hash no key of a newer one.

        >>> hashed = KeyHash.of("orders", "s")
        >>> erased = ErasedKeys(hashed, {hashed.digest([1]): "02"})
        >>> [erased.refuses([1], "01"), erased.refuses([1], "02"), erased.refuses([2], "01")]
        [True, False, False]
        """
        return position < self.newest and position < self.erased_at(key)
