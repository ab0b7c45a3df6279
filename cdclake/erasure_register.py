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
        found = {}
        for name in list(self._control.names(ERASURES)):
            table = name.removesuffix(".json")
            stored = self._control.read(erasures_name(table))
            if stored is not None:
                erasures = Erasures.from_json(stored.content)
                found[table] = ErasedKeys.of(table, self._salt(), erasures)
        return found
