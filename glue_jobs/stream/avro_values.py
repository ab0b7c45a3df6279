"""Translation of Avro records to the JSON that the JSON converter would have written.

So there is one meaning of an event: the decoders of JSON check the types. A value that starts with
a brace is JSON already, such as a marker. One that cannot be read becomes a marker with the reason.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence

import msgspec

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.jobs.stream.schema_registry import SchemaRegistry, UnknownSchema
from cdclake.jobs.stream.writer_schema import WriterSchema, escapes_as_jackson

_GLUE_VERSION, _UNCOMPRESSED, _ZLIB = 3, 0, 5
_GLUE_HEADER_BYTES, _NUMBERED_HEADER_BYTES = 18, 5
# What fastavro raises for bytes that are not of the schema.
_BROKEN = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
_REFUSED_FIELD = f',"{naming.REFUSED}":{{"reason":"{refusals.SCHEMA_REFUSED}: '.encode()


class AvroValues:
    """Translator of the values of a plan's records.

    It asks the registry once per schema, and again for one that does not fit a record.
    """

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._schemas: dict[str, WriterSchema] = {}
        self._encode = msgspec.json.Encoder().encode

    def as_json(self, values: Sequence[bytes | None]) -> list[bytes | None]:
        """Translate values; raise what the registry's client raises if it does not answer."""
        asked: dict[str, bytes] = {}  # in this block only: a later one asks again
        return [
            value if not value or value[0] == ord("{") else self._translated(value, asked)
            for value in values
        ]

    def _translated(self, value: bytes, asked: dict[str, bytes]) -> bytes:
        """Translate a value; `asked` has the refusal of each schema that this block asked for."""
        try:
            identifier, body = split_header(value)
            schema = self._schemas.get(identifier)
            if schema is None and (refusal := asked.get(identifier)):
                return refusal
            schema = schema or self._ask(identifier, asked)
            try:
                return self._text(schema, body)
            except _BROKEN:
                if identifier in asked:
                    raise
            # A registry that was replaced may have another schema under this number by now.
            return self._text(self._ask(identifier, asked), body)
        except (UnknownSchema, *_BROKEN) as error:
            return _refused(error)

    def _text(self, schema: WriterSchema, body: bytes) -> bytes:
        return escapes_as_jackson(self._encode(schema.read(body)))

    def _ask(self, identifier: str, asked: dict[str, bytes]) -> WriterSchema:
        try:
            found = WriterSchema(self._registry.schema_text(identifier))
        except (UnknownSchema, *_BROKEN) as error:
            asked[identifier] = _refused(error)
            raise
        asked[identifier] = b""
        self._schemas[identifier] = found
        return found


def split_header(value: bytes) -> tuple[str, bytes]:
    """Return the schema's identifier and the record's body; raise ValueError for another header."""
    if value[0] == _GLUE_VERSION and len(value) >= _GLUE_HEADER_BYTES:
        body = value[_GLUE_HEADER_BYTES:]
        if value[1] == _ZLIB:
            body = zlib.decompress(body)
        elif value[1] != _UNCOMPRESSED:
            raise ValueError(f"unknown compression {value[1]}")
        return str(uuid.UUID(bytes=value[2:_GLUE_HEADER_BYTES])), body
    if value[0] == 0 and len(value) >= _NUMBERED_HEADER_BYTES:
        number = int.from_bytes(value[1:_NUMBERED_HEADER_BYTES], "big")
        return str(number), value[_NUMBERED_HEADER_BYTES:]
    raise ValueError("neither JSON nor the header of a schema registry")


def without_refusal(value: bytes | None) -> bytes | None:
    """Return an event without the connector's mark that the registry refused its schema.

    The mark is the last field of the event, and no text in it contains an unescaped quote.
    """
    if value is None or value[:1] != b"{" or (at := value.rfind(_REFUSED_FIELD)) < 0:
        return value
    return value[:at] + b"}"


def _refused(error: Exception) -> bytes:
    kind = type(error).__name__
    reason = f"{refusals.UNREADABLE_AVRO}: {kind}: {error}"
    return msgspec.json.encode({naming.REFUSED: {"reason": reason}})
