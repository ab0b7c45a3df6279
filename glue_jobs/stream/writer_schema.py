"""Writer schema of Avro records, and the values that Connect's JSON converter writes otherwise.

These are numbers in arrays and structs, whose text the changelog keeps, reals, numbers that are not
finite, and names that Avro does not allow (`AvroShape` in java/).
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import fastavro
import msgspec
import numpy as np
from fastavro.schema import SchemaParseException

from cdclake import naming

_Change = Callable[[Any], Any] | None  # None: the value stays as it is
_UNCHANGED = frozenset({"null", "boolean", "int", "long", "bytes", "string"})
_ROW_DEPTH = 1  # the event has the depth 0; the changelog keeps the text of what is deeper
_ESCAPE = re.compile("_u([0-9a-f]{4})")
# Jackson writes control characters with capital letters.
_CONTROL = re.compile(rb"(?<!\\)((?:\\\\)*\\u00)(0[b-f]|1[a-f])")
_PLAIN_FROM, _PLAIN_BELOW = -3, 7  # Java writes smaller and greater numbers with an exponent


class UnsupportedSchema(ValueError):
    """Schema that no connector of cdclake writes."""


class OtherSchema(ValueError):
    """Record of another schema than the one that the registry has under the record's number."""

    def __init__(self) -> None:
        super().__init__(
            "the registry was replaced, and has another schema under the record's number:"
            " restore it and replay, or resync the table"
        )


class WriterSchema:
    """Schema of a registry, ready to decode records."""

    def __init__(self, text: str) -> None:
        """Parse a schema; raise UnsupportedSchema if fastavro refuses it."""
        raw = json.loads(text)
        try:
            self._parsed: Any = fastavro.parse_schema(_without_defaults(raw))
        except SchemaParseException as error:
            raise UnsupportedSchema(str(error)) from error
        self._fingerprint = _fingerprint(raw)
        self._named: dict[str, Any] = {}
        self._change = self._change_of(raw, 0, "")

    def read(self, body: bytes) -> Any:
        """Decode a record to the values that Connect's JSON converter would write.

        Raise OtherSchema if the record has the fingerprint of another schema.
        """
        stream = io.BytesIO(body)
        event: Any = fastavro.schemaless_reader(stream, self._parsed, None)
        if stream.tell() != len(body):
            raise ValueError("bytes follow the record")
        if self._change is not None:
            event = self._change(event)
        expected = self._fingerprint
        if expected is not None and event.pop(naming.SCHEMA_FINGERPRINT) != expected:
            raise OtherSchema
        return event

    def _change_of(self, schema: Any, depth: int, space: str) -> _Change:
        if isinstance(schema, list):
            return self._optional(schema, depth, space)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._change_of(kind, depth, space)
        if kind in _UNCHANGED:
            return None
        if kind in ("float", "double"):
            return _number(kind, is_kept=depth > _ROW_DEPTH + 1)
        if kind == "array":
            item = self._change_of(schema["items"], _ROW_DEPTH + 2, space)
            return None if item is None else partial(_changed_items, item)
        if kind == "map":
            item = self._change_of(schema["values"], _ROW_DEPTH + 2, space)
            return None if item is None else partial(_changed_values, item)
        if kind == "record":
            return self._record(schema, depth, space)
        full = kind if "." in kind or not space else f"{space}.{kind}"
        if full not in self._named:
            raise UnsupportedSchema(f"type {kind!r} of the schema is not supported")
        return self._record(*self._named[full])

    def _optional(self, branches: list[Any], depth: int, space: str) -> _Change:
        present = [branch for branch in branches if branch != "null"]
        if len(present) != 1:
            raise UnsupportedSchema("the schema has a union of several types")
        change = self._change_of(present[0], depth, space)
        return None if change is None else lambda found: None if found is None else change(found)

    def _record(self, schema: dict[str, Any], depth: int, space: str) -> _Change:
        name = schema["name"]
        space = schema.get("namespace", name.rpartition(".")[0] or space)
        full = name if "." in name or not space else f"{space}.{name}"
        self._named[full] = (schema, depth, space)
        fields = [
            (each["name"], self._change_of(each["type"], depth + 1, space))
            for each in schema["fields"]
        ]
        if any(unescaped(name) != name for name, _ in fields):
            renamed = [(name, unescaped(name), change) for name, change in fields]
            return lambda found: {
                source: found[name] if change is None else change(found[name])
                for name, source, change in renamed
            }
        return _changed_fields([(name, change) for name, change in fields if change is not None])


def _fingerprint(schema: Any) -> int | None:
    """Return the fingerprint that the connector gave to a schema; None if it has none."""
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    found = (each for each in fields if each["name"] == naming.SCHEMA_FINGERPRINT)
    return next((each.get("default") for each in found), None)


def _without_defaults(schema: Any) -> Any:
    """Return the schema for reading its own records, which never needs defaults.

    fastavro refuses some that the connector may have registered, such as NaN.
    """
    if isinstance(schema, dict):
        return {name: _without_defaults(part) for name, part in schema.items() if name != "default"}
    return [_without_defaults(part) for part in schema] if isinstance(schema, list) else schema


def _changed_fields(changes: Sequence[tuple[str, Callable[[Any], Any]]]) -> _Change:
    if not changes:
        return None

    def changed(found: dict[str, Any]) -> dict[str, Any]:
        for name, change in changes:
            found[name] = change(found[name])
        return found

    return changed


def _number(kind: str, *, is_kept: bool) -> Callable[[float], Any]:
    """Return the change of numbers; their text only matters where the changelog keeps it."""

    def changed(found: float) -> Any:
        if not math.isfinite(found):
            return "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
        shortest = str(np.float32(found)) if kind == "float" else repr(found)
        return msgspec.Raw(java_text(shortest).encode()) if is_kept else float(shortest)

    return changed


def java_text(shortest: str) -> str:
    """Return a finite number's text in Java, from its shortest digits.

    >>> [java_text(text) for text in ("1e-07", "1234.5", "10000000.0", "-0.0", "0.001")]
    ['1.0E-7', '1234.5', '1.0E7', '-0.0', '0.001']
    """
    sign, digits, exponent = Decimal(shortest).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    if not text:
        return "-0.0" if sign else "0.0"
    assert isinstance(exponent, int)
    power = len(digits) + exponent - 1  # of the first digit
    lead = "-" if sign else ""
    if _PLAIN_FROM <= power < _PLAIN_BELOW:
        if power < 0:
            return f"{lead}0.{'0' * (-power - 1)}{text}"
        whole, fraction = text[: power + 1].ljust(power + 1, "0"), text[power + 1 :]
        return f"{lead}{whole}.{fraction or '0'}"
    return f"{lead}{text[0]}.{text[1:] or '0'}E{power}"


def unescaped(name: str) -> str:
    """Return the source's name of a field.

    >>> unescaped("gr_u00f6_u00dfe")
    'größe'
    """
    if _ESCAPE.search(name) is None:
        return name
    units = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), name)
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


def escapes_as_jackson(text: bytes) -> bytes:
    r"""Return JSON with the escapes of Jackson, since the changelog keeps the text of arrays.

    >>> escapes_as_jackson(b'"\\u001f \\\\u001f"')
    b'"\\u001F \\\\u001f"'
    """
    if rb"\u00" not in text:
        return text
    return _CONTROL.sub(lambda found: found[1] + found[2].upper(), text)


def _changed_items(change: Callable[[Any], Any], found: list[Any]) -> list[Any]:
    return [change(each) for each in found]


def _changed_values(change: Callable[[Any], Any], found: dict[str, Any]) -> dict[str, Any]:
    return {name: change(value) for name, value in found.items()}
