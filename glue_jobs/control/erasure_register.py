"""Registers of erased keys among the control objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cdclake.control_objects import ERASURES, erasures_name
from cdclake.erasures import ErasedKeys, Erasures, KeyHash
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.store import ObjectStore

_MAX_ATTEMPTS = 10


class ErasureRegister:
    """Reader of the registers; the salt is looked up when a register exists, and only then."""

    def __init__(self, control: ObjectStore, salt: Callable[[], str]) -> None:
        self._control, self._salt = control, salt

    def read(self) -> Mapping[str, ErasedKeys]:
        """Return the erased keys by table; one request lists the tables that have some."""
        tables = [name.removesuffix(".json") for name in self._control.names(ERASURES)]
        found = {table: self.of(table) for table in tables}
        return {table: erased for table, erased in found.items() if erased is not None}

    def of(self, table: str) -> ErasedKeys | None:
        """Return the erased keys of one table; None if it has none."""
        stored = self._control.read(erasures_name(table))
        if stored is None:
            return None
        return ErasedKeys.of(table, self._salt(), Erasures.from_json(stored.content))


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
