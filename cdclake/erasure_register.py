"""Registers of erased keys among the control objects, as all who refuse their events read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdclake.control_objects import ERASURES, erasures_name
from cdclake.control_reader import ControlReader
from cdclake.erasures import ErasedKeys, Erasures


class ErasureRegister:
    """Reader of the registers; the salt is looked up when a register exists, and only then."""

    def __init__(self, control: ControlReader, salt: Callable[[], str]) -> None:
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
