"""Writes to the registers of erased keys; `cdclake.erasure_register` reads them."""

from __future__ import annotations

from collections.abc import Sequence

from cdclake.control_objects import erasures_name
from cdclake.erasures import ErasedKeys, Erasures, KeyHash
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.store import ObjectStore

_MAX_ATTEMPTS = 10


def register_erasure(
    control: ObjectStore, hashed: KeyHash, hashes: Sequence[str], position: str
) -> None:
    """Add keys to their table's register; other commands may add some at the same time.

    Raise InputError if the register was made with another salt.
    """
    name = erasures_name(hashed.table)
    for _ in range(_MAX_ATTEMPTS):
        stored = control.read(name)
        before = Erasures(hashed.fingerprint)
        if stored is not None:
            before = Erasures.from_json(stored.content)
        ErasedKeys.checked(hashed, before)
        after = before.added(hashes, position)
        if control.write_if(name, after.to_json(), stored.etag if stored else None) is not None:
            return
    raise ComponentFailed(
        f"{name} was changed by other commands {_MAX_ATTEMPTS} times",
        "wait until they have ended, then run the command again",
    )
