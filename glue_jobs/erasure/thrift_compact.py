"""Reader of Thrift's compact protocol, in which Parquet writes its headers, footer and indexes.

Structs are mappings by field id, without names: a search needs no more, and no type is skipped.
"""

from __future__ import annotations

import struct
from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_LONG_LIST = 15


class ThriftReader:
    """Cursor over the bytes of compact structs."""

    def __init__(self, content: bytes | memoryview, at: int = 0) -> None:
        self._content, self.at = memoryview(content), at

    def struct(self) -> dict[int, Any]:
        """Read a struct; raise ValueError if there is none."""
        fields: dict[int, Any] = {}
        field_id = 0
        while (header := self._byte()) != 0:
            delta, kind = header >> 4, header & 0x0F
            field_id = field_id + delta if delta else self._signed()
            fields[field_id] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):  # in a list
            return self._byte() == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._signed()
        if kind == _DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        if kind == _BINARY:
            return bytes(self._take(self._unsigned()))
        if kind in (_LIST, _SET):
            return self._list()
        if kind == _MAP:
            return self._map()
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(f"Thrift has no type {kind}")

    def _list(self) -> list[Any]:
        header = self._byte()
        size, kind = header >> 4, header & 0x0F
        size = self._unsigned() if size == _LONG_LIST else size
        return [self._value(kind) for _ in range(size)]

    def _map(self) -> list[tuple[Any, Any]]:
        size = self._unsigned()
        kinds = self._byte() if size else 0
        return [(self._value(kinds >> 4), self._value(kinds & 0x0F)) for _ in range(size)]

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)

    def _unsigned(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> memoryview:
        taken = self._content[self.at : self.at + size]
        if len(taken) != size:
            raise ValueError("the bytes end within a Thrift struct")
        self.at += size
        return taken
