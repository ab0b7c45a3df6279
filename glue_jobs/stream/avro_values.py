"""Translation of Avro records to the JSON that the JSON converter would have written.

So there is one meaning of an event: the decoders of JSON check the types. A value that starts with
a brace is JSON already, such as a marker. One that cannot be read becomes a marker with the reason.
"""

from __future__ import annotations

import io
import struct
import uuid
import zlib
from collections.abc import Sequence

import fastavro
import msgspec

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.jobs.stream.schema_registry import SchemaRegistry, UnknownSchema
from cdclake.jobs.stream.writer_schema import UnsupportedSchema, WriterSchema, escapes_as_jackson

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
    """Translator of the values of a plan's records; it asks the registry once per schema."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._schemas: dict[str, WriterSchema] = {}
        self._encode = msgspec.json.Encoder().encode

    def as_json(self, values: Sequence[bytes | None]) -> list[bytes | None]:
        """Translate values; raise what the registry's client raises if it does not answer."""
        unknown: dict[str, bytes] = {}  # in this block only: a later one asks again
        return [
            value if not value or value[0] == ord("{") else self._translated(value, unknown)
            for value in values
        ]

    def _translated(self, value: bytes, unknown: dict[str, bytes]) -> bytes:
        try:
            identifier, body = split_header(value)
            if identifier in unknown:
                return unknown[identifier]
            try:
                schema = self._schema(identifier)
            except (UnknownSchema, UnsupportedSchema) as error:
                unknown[identifier] = _refused(error)
                return unknown[identifier]
            stream = io.BytesIO(body)
            event = fastavro.schemaless_reader(stream, schema.parsed, None)
            if stream.tell() != len(body):
                return _refused(ValueError("bytes follow the record"))
            return escapes_as_jackson(self._encode(schema.as_connect(event)))
        except _BROKEN as error:
            return _refused(error)

    def _schema(self, identifier: str) -> WriterSchema:
        found = self._schemas.get(identifier)
        if found is None:
            found = self._schemas[identifier] = WriterSchema(self._registry.schema_text(identifier))
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
