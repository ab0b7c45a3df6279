"""Registers of erased keys among the control objects, as all who refuse their events read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdclake.control_objects import ERASURES, erasures_name
from cdclake.control_reader import ControlReader
from cdclake.erasures import ErasedKeys, Erasures


class ErasureRegister:
    """Reader of the registers; the salt is looked up when a register has to be read."""

    def __init__(self, control: ControlReader, salt: Callable[[], str]) -> None:
        self._control, self._salt = control, salt
        self._known: dict[str, tuple[str, ErasedKeys]] = {}  # by table, with the register's ETag

    def read(self) -> Mapping[str, ErasedKeys]:
        """Return the erased keys by table; a register that has not changed is not read again.

        They only grow in number, and the stream calls this for each batch. One request lists the
        tables that have some.
        """
        found = {}
        for name, etag in self._control.etags(ERASURES).items():
            table = name.removesuffix(".json")
            known, erased = self._known.get(table, ("", None))
            found[table] = erased if known == etag else self.of(table)
        return {table: erased for table, erased in found.items() if erased is not None}

    def of(self, table: str) -> ErasedKeys | None:
        """Return the erased keys of one table; None if it has none."""
        stored = self._control.read(erasures_name(table))
        if stored is None:
            return None
        erased = ErasedKeys.of(table, self._salt(), Erasures.from_json(stored.content))
        self._known[table] = stored.etag, erased
        return erased
