"""Records of a schema registry: their headers, what cannot be read, and a registry that is away."""

from __future__ import annotations

import io
import json
import uuid
import zlib
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import fastavro
import numpy as np
import pytest

from cdclake.errors import ServiceUnavailable
from cdclake.jobs.iceberg.task_failures import failure_of, failure_text
from cdclake.jobs.stream.avro_values import AvroValues, split_header, without_refusal
from cdclake.jobs.stream.block_decoder import BlockDecoder
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.deduplicate import identity
from cdclake.jobs.stream.partition_summary import PartitionSummary, summarize
from cdclake.jobs.stream.schema_registry import ApicurioSchemas, UnknownSchema
from cdclake.jobs.stream.writer_schema import java_text
from cdclake.plan import Column, Plan, Table

SCHEMA: dict[str, Any] = {"type": "record", "name": "e", "fields": [{"name": "a", "type": "int"}]}
TABLE = Table(
    schema="public", table="t", name="t", topic="s.public.t", key=("id",),
    columns=(Column(source="id", name="id", type="integer"),),
)  # fmt: skip
PLAN = Plan(name="s", source_database="s", lake_database="l", tables=(TABLE,))


class Stored:
    """Schemas by identifier, and how often each was asked for."""

    def __init__(self, schemas: dict[str, str]) -> None:
        self.schemas, self.asked = schemas, list[str]()

    def schema_text(self, identifier: str) -> str:
        """Return a schema; raise UnknownSchema if there is none."""
        self.asked.append(identifier)
        if identifier not in self.schemas:
            raise UnknownSchema(identifier)
        return self.schemas[identifier]


def body(value: float = 5, schema: dict[str, Any] = SCHEMA) -> bytes:
    """A record of the schema without a header."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"a": value})
    return stream.getvalue()


ID = uuid.UUID(int=9)
GLUE = b"\x03\x00" + ID.bytes
PACKED = b"\x03\x05" + ID.bytes
NUMBERED = b"\x00\x00\x00\x00\x07"


@pytest.mark.parametrize(
    ("value", "identifier"),
    [
        (GLUE + body(), str(ID)),
        (PACKED + zlib.compress(body()), str(ID)),
        (NUMBERED + body(), "7"),
    ],
)
def test_a_header_names_the_schema(value: bytes, identifier: str) -> None:
    assert split_header(value) == (identifier, body())
    registry = Stored({identifier: json.dumps(SCHEMA)})
    values = AvroValues(registry)
    assert values.as_json([value, None, b'{"a":6}', value]) == [
        b'{"a":5}', None, b'{"a":6}', b'{"a":5}',
    ]  # fmt: skip
    assert registry.asked == [identifier]


@pytest.mark.parametrize(
    "value",
    [
        b"\x01abc",
        b"\x03\x00short",
        b"\x03\x09" + ID.bytes + body(),
        b"\x03\x05" + ID.bytes + b"no zlib",
        GLUE,
        GLUE + body() + b"more",
        GLUE + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x03\x00" + uuid.UUID(int=1).bytes + body(),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(value: bytes) -> None:
    values = AvroValues(Stored({str(ID): json.dumps(SCHEMA)})).as_json([value])
    rows = BlockDecoder(TABLE, PLAN).decode(values, [b'{"id":1}'], 0, np.arange(1))
    [reason] = rows[REFUSAL].to_pylist()
    assert reason.startswith("UNREADABLE_AVRO: ")


def test_an_unknown_schema_is_asked_for_once_in_a_block() -> None:
    registry = Stored({})
    values = AvroValues(registry)
    for _ in range(2):
        values.as_json([GLUE + body()] * 5)
    assert registry.asked == [str(ID)] * 2


def test_unions_of_several_types_are_refused() -> None:
    schema = {**SCHEMA, "fields": [{"name": "a", "type": ["int", "string"]}]}
    [found] = AvroValues(Stored({str(ID): json.dumps(schema)})).as_json([GLUE + b"\x00\x0a"])
    assert found is not None
    assert b"union of several types" in found


def test_defaults_that_are_not_finite_are_ignored() -> None:
    """Earlier connectors registered them, and fastavro refuses them."""
    kind = {"type": "double", "connect.default": "NaN"}
    schema = {**SCHEMA, "fields": [{"name": "a", "type": kind, "default": "NaN"}]}
    plain = {**SCHEMA, "fields": [{"name": "a", "type": "double"}]}
    value = GLUE + body(0.5, plain)
    assert AvroValues(Stored({str(ID): json.dumps(schema)})).as_json([value]) == [b'{"a":0.5}']


def test_a_schema_that_cannot_be_parsed_is_refused() -> None:
    item = {"type": "record", "name": "r", "fields": []}
    fields = [{"name": name, "type": item} for name in ("a", "b")]
    registry = Stored({str(ID): json.dumps({**SCHEMA, "fields": fields})})
    found = AvroValues(registry).as_json([GLUE] * 3)
    assert all(b"UNREADABLE_AVRO: UnsupportedSchema: redefined" in (e or b"") for e in found)
    assert registry.asked == [str(ID)]


def fingerprinted(*names: str) -> dict[str, Any]:
    """A schema as the connector writes it for a registry with numbers."""
    fields = [{"name": name, "type": "string"} for name in names]
    digest = zlib.crc32(" ".join(names).encode()) >> 1
    kind = {"type": "int", "connect.default": digest}
    fingerprint = {"name": "cdc_schema", "type": kind, "default": digest}
    return {**SCHEMA, "fields": [*fields, fingerprint]}


def numbered(schema: dict[str, Any], **values: str) -> bytes:
    """A record of the schema with the number 7."""
    stream = io.BytesIO(NUMBERED)
    stream.seek(0, io.SEEK_END)
    digest = schema["fields"][-1]["default"]
    fastavro.schemaless_writer(
        stream, fastavro.parse_schema(schema), {**values, "cdc_schema": digest}
    )
    return stream.getvalue()


def test_a_registry_that_was_replaced_swaps_no_columns() -> None:
    """Its numbers begin again; both layouts have the same bytes."""
    former, later = fingerprinted("a", "b"), fingerprinted("b", "a")
    one, other = numbered(former, a="A", b="B"), numbered(later, a="A", b="B")
    registry = Stored({"7": json.dumps(former)})
    values = AvroValues(registry)
    assert values.as_json([one]) == [b'{"a":"A","b":"B"}']
    registry.schemas["7"] = json.dumps(later)
    assert values.as_json([one, other, one])[:2] == [b'{"a":"A","b":"B"}', b'{"b":"B","a":"A"}']
    assert registry.asked == ["7", "7"]
    for found in (values.as_json([one]), AvroValues(registry).as_json([one] * 2)):
        assert all(b"UNREADABLE_AVRO: OtherSchema: the registry was" in (e or b"") for e in found)


def test_a_record_that_does_not_fit_asks_once_in_a_block() -> None:
    registry = Stored({"7": json.dumps(SCHEMA)})
    values = AvroValues(registry)
    assert values.as_json([NUMBERED + body()]) == [b'{"a":5}']
    del registry.schemas["7"]
    found = values.as_json([NUMBERED, NUMBERED, NUMBERED + body()])
    assert [b"UNREADABLE_AVRO" in (each or b"") for each in found] == [True, True, False]
    assert registry.asked == ["7"] * 2


def test_a_refusal_is_removed_and_nothing_else() -> None:
    event = b'{"op":"c","after":{"note":",\\"cdc_refused\\":{\\"reason\\":"}'
    assert (
        without_refusal(event + b',"cdc_refused":{"reason":"SCHEMA_REFUSED: x"}}') == event + b"}"
    )
    assert without_refusal(event + b"}") == event + b"}"
    assert without_refusal(GLUE) == GLUE
    assert without_refusal(None) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("1e+16", "1.0E16"), ("123456.75", "123456.75"), ("9999999.0", "9999999.0"),
        ("1e-05", "1.0E-5"), ("0.0015", "0.0015"), ("-1.5e-10", "-1.5E-10"), ("0.0", "0.0"),
        ("100.0", "100.0"), ("5e-324", "5.0E-324"),
        ("1.7976931348623157e+308", "1.7976931348623157E308"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_java_does(number: str, text: str) -> None:
    assert java_text(number) == text
    assert float(text) == float(number)


def test_a_refused_schema_is_found_by_its_table_until_it_is_accepted() -> None:
    event = (
        b'{"before":null,"after":{"id":1},"op":"c","cdc_epoch":"1","source":{"lsn":5,"txId":1,'
        b'"ts_us":7,"sequence":"[null,\\"5\\"]"},"cdc_refused":{"reason":"SCHEMA_REFUSED: no"}}'
    )
    summaries = []
    for value in (event, without_refusal(event)):
        rows = BlockDecoder(TABLE, PLAN).decode([value], [b'{"id":1}'], 0, np.arange(1))
        summaries.append(summarize(rows, 0, identity(TABLE)))
    assert [found.schema_refused for found in summaries] == ["SCHEMA_REFUSED: no", None]
    assert [found.accepted for found in summaries] == [0, 1]
    assert PartitionSummary.from_json(summaries[0].to_json()) == summaries[0]


class Answering(BaseHTTPRequestHandler):
    """Registry with one schema, and one number that fails."""

    def do_GET(self) -> None:
        """Answer by the number at the end of the path."""
        status = {"7": 200, "8": 503}.get(self.path.rpartition("/")[2], 404)
        self.send_response(status)
        self.end_headers()
        if status == 200:
            self.wfile.write(json.dumps(SCHEMA).encode())

    def log_message(self, *_: object) -> None:
        """Write no log."""


def test_apicurio_that_does_not_answer_is_a_passing_failure() -> None:
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        schemas = ApicurioSchemas(f"http://127.0.0.1:{server.server_port}/")
        assert json.loads(schemas.schema_text("7")) == SCHEMA
        with pytest.raises(UnknownSchema):
            schemas.schema_text("9")
        with pytest.raises(ServiceUnavailable, match="503"):
            schemas.schema_text("8")
        server.shutdown()
    with pytest.raises(ServiceUnavailable) as failed:
        AvroValues(schemas).as_json([NUMBERED + body()])
    assert isinstance(failure_of(failure_text(failed.value)), ServiceUnavailable)
