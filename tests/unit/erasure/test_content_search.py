"""The search finds a value wherever a format can keep it, and nothing where it is not."""

from __future__ import annotations

import base64
import gzip
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdclake.errors import ComponentFailed
from cdclake.jobs.erasure.content_search import search_content
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from tests.stored_lake.archive import unpack
from tests.stored_lake.stored import ARCHIVES

MAIL = "ada.lovelace@example.org"
KEY = SoughtValue("id", "4711")
SOUGHT = SoughtValues([SoughtValue("mail", MAIL), KEY])
OTHERS = [f"someone.else.{i}@example.org" for i in range(500)]
COMPRESSIONS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")


def found_in(content: bytes, sought: SoughtValues = SOUGHT, name: str = "file") -> dict[str, str]:
    """The parts in which values were found, with their columns."""
    parts = {}
    for part, columns in search_content(name, content, sought):
        parts[part] = ",".join(sorted(columns))
    return parts


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    """A Parquet file of these columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", [None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_every_encoding_of_a_parquet_text(
    compression: str, version: str, encoding: str | None
) -> None:
    options: dict[str, Any] = {"compression": compression, "data_page_version": version}
    options |= {"use_dictionary": True} if encoding is None else {
        "use_dictionary": False, "column_encoding": {"contact": encoding},
    }  # fmt: skip
    # Between texts with the same start, so that only decoding finds it in a delta encoding.
    with_it = parquet({"contact": [*OTHERS, f"{MAIL[:20]}x", MAIL, f"{MAIL}.au"]}, **options)
    assert found_in(with_it)["values of column contact"] == "mail"
    assert found_in(parquet({"contact": OTHERS}, **options)) == {}


def test_statistics_pages_and_column_indexes() -> None:
    content = parquet(
        {"contact": [MAIL, "b" * 30], "id": [4711, 4712]},
        write_page_index=True, compression="zstd", use_dictionary=["contact"],
    )  # fmt: skip
    parts = found_in(content)
    for part in ("values", "statistics", "column index"):
        assert parts[f"{part} of column contact"] == "mail"
        assert parts[f"{part} of column id"] == "id"
    assert parts["dictionary of column contact"] == "mail"


def test_dictionary_entries_that_no_row_uses() -> None:
    texts = pa.DictionaryArray.from_arrays([0, 0], ["someone", MAIL])
    unused = parquet({"contact": texts}, compression="zstd")
    assert pq.read_table(io.BytesIO(unused))["contact"].to_pylist() == ["someone"] * 2
    assert "dictionary of column contact" in found_in(unused)
    assert "values of column contact" not in found_in(unused)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_numbers_count_in_their_column_and_table_only(kind: pa.DataType) -> None:
    mine = parquet({"id": pa.array([1, 4711, 3], kind)})
    assert "values of column id" in found_in(mine) and "dictionary of column id" in found_in(mine)
    assert found_in(mine, SOUGHT.elsewhere()) == {}
    assert found_in(parquet({"quantity": pa.array([4711], kind)})) == {}
    assert found_in(parquet({"id": pa.array([47110, 1], kind)})) == {}


def test_nested_values_and_bytes() -> None:
    event = json.dumps({"after": {"id": 4711, "mail": MAIL}}).encode()
    parts = found_in(parquet({"value": [event], "names": [[None, MAIL]]}, compression="zstd"))
    assert parts["values of column value"] == parts["values of column names"] == "mail"


MANIFEST: dict[str, Any] = {
    "type": "record", "name": "manifest_entry", "fields": [
        {"name": "path", "type": "string"},
        {"name": "partition", "type": {"type": "record", "name": "r102", "fields": [
            {"name": "contact", "type": ["null", "string"]}]}},
        *({"name": name, "type": ["null", {"type": "array", "items": {
            "type": "record", "name": f"pair_{name}", "fields": [
                {"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]}}]}
          for name in ("lower_bounds", "upper_bounds")),
    ],
}  # fmt: skip
LIST: dict[str, Any] = {
    "type": "record", "name": "manifest_file", "fields": [
        {"name": "partitions", "type": {"type": "array", "items": {
            "type": "record", "name": "r508", "fields": [
                {"name": "lower_bound", "type": ["null", "bytes"]},
                {"name": "upper_bound", "type": ["null", "bytes"]}]}}},
    ],
}  # fmt: skip
FIELDS = {"schema": json.dumps({"fields": [{"id": 1, "name": "id"}, {"id": 2, "name": "contact"}]})}


def avro(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    """A compressed Avro file with the metadata of a manifest."""
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [record], codec="deflate", metadata=FIELDS)
    return sink.getvalue()


def manifest(lower: dict[int, bytes], upper: dict[int, bytes], partition: str | None) -> bytes:
    """A manifest of one file with these bounds by field id."""
    lists = [
        [{"key": key, "value": value} for key, value in each.items()] for each in (lower, upper)
    ]
    return avro(MANIFEST, {
        "path": "s3://b/f.parquet", "partition": {"contact": partition},
        "lower_bounds": lists[0], "upper_bounds": lists[1],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("lower", "upper", "columns"),
    [
        ({2: MAIL.encode()}, {}, "mail"),
        ({2: MAIL[:16].encode()}, {}, "mail"),  # cut, as Iceberg does by default
        ({}, {2: b"ada.lovelace@exb"}, "mail"),  # cut, and the last character made greater
        ({1: (4711).to_bytes(8, "little")}, {}, "id"),
        ({}, {1: (4711).to_bytes(4, "little")}, "id"),
    ],
)
def test_bounds_of_manifests(
    lower: dict[int, bytes], upper: dict[int, bytes], columns: str
) -> None:
    assert found_in(manifest(lower, upper, None))["bound of a manifest"] == columns


@pytest.mark.parametrize(
    ("text", "maximum"),
    [
        ("12345 Абвгдежзип-Улица 7", "12345 Абвгдежзир"),  # D0 BF becomes D1 80
        ("ул. Лесная, корп. 2, Самара", "ул. Лесная, корр"),
        ("12345 Abcdefghi\ud7ff and more", "12345 Abcdefghi\ue000"),  # over the surrogates
    ],
)
def test_a_cut_maximum_whose_last_character_carries(text: str, maximum: str) -> None:
    sought = SoughtValues([SoughtValue("address", text)])
    assert found_in(manifest({}, {2: maximum.encode()}, None), sought) == {
        "bound of a manifest": "address"
    }


def test_a_maximum_of_parquet_whose_last_byte_cannot_be_raised() -> None:
    """Parquet raises the byte before it instead: D0 BF becomes D1 BF."""
    sought = SoughtValues([SoughtValue("address", "12345 Абвгдежзип-Улица 7")])
    raised = "12345 Абвгдежзи".encode() + b"\xd1\xbf"
    assert sought.in_bound("address", raised) == {"address"}
    assert sought.in_bound("address", "12345 Абвгдежзис".encode()) == set()


def test_bounds_of_other_values_and_partitions() -> None:
    numbers, texts = (4712).to_bytes(8, "little"), b"ada.lovelace@ezb"
    assert found_in(manifest({1: numbers, 2: texts}, {3: (4711).to_bytes(8, "little")}, None)) == {}
    assert found_in(manifest({}, {}, MAIL)) == {"Avro record": "mail"}
    listed = avro(LIST, {"partitions": [{"lower_bound": MAIL.encode(), "upper_bound": None}]})
    assert "bound of a manifest" in found_in(listed)


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_puffin_blobs(codec: str | None) -> None:
    for text, parts in ((MAIL, {"Puffin blob sketch"}), ("x" * 30, set())):
        blob = f"{OTHERS[0]}{''.join(OTHERS)}{text}".encode()  # so that its bytes are not in a row
        stored = blob
        if codec is not None:
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, codec) as stream:
                stream.write(blob)
            stored = sink.getvalue().to_pybytes()
        entry = {"type": "sketch", "offset": 4, "length": len(stored), "fields": [2]}
        entry |= {} if codec is None else {"compression-codec": codec}
        footer = json.dumps({"blobs": [entry]}).encode()
        end = len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
        content = b"PFA1" + stored + b"PFA1" + footer + end
        assert found_in(content).keys() - {"bytes"} == parts


def test_compressed_json_and_its_escapes() -> None:
    text = 'Zoë "the" Å\n'
    sought = SoughtValues([SoughtValue("name", text), KEY])
    for ascii_only in (True, False):
        line = json.dumps({"message": json.dumps({"name": text}, ensure_ascii=ascii_only)})
        assert found_in(gzip.compress(f"first\n{line}\n".encode()), sought)
    control = json.dumps({"id": 4711, "rows": [{"id": "x"}]}).encode()
    assert found_in(control, sought) == {"JSON": "id"}
    assert found_in(b'{"id": 4712}\n{"offset": 4711}', sought) == {}
    assert found_in(b"", sought) == {}
    record = base64.b64encode(json.dumps({"mail": MAIL}).encode()).decode()
    failed = json.dumps({"errorCode": "Lambda.FunctionError", "rawData": record}).encode()
    assert found_in(gzip.compress(b"\n".join([b"{}", failed]))) == {"JSON": "mail"}
    assert found_in(b"", name=f"data/mail={MAIL}/f.parquet") == {"name": "mail"}


def test_a_value_over_several_pages_of_sqlite(tmp_path: Path) -> None:
    long = "".join(f"{i:04}-" for i in range(4000))
    with sqlite3.connect(tmp_path / "index.db") as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table object (key text, body text)")
        database.execute("insert into object values ('k', ?)", (long,))
    database.close()
    content = (tmp_path / "index.db").read_bytes()
    sought = SoughtValues([SoughtValue("note", long)])
    assert sought.in_bytes(content) == set()
    assert found_in(content, sought) == {"row of object": "note"}


@pytest.mark.parametrize("magic", [b"PAR1", b"Obj\x01", b"PFA1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"])
def test_a_file_that_cannot_be_read_proves_nothing(magic: bytes) -> None:
    with pytest.raises(ComponentFailed, match="file cannot be searched"):
        found_in(magic + b"damaged")


def test_each_of_a_thousand_leftovers_and_none_of_the_erased() -> None:
    erased = [f"person-{i:04}@erased.example" for i in range(1000)]
    sought = SoughtValues([SoughtValue("mail", text) for text in erased])
    kept = {"id": list(range(500)), "contact": OTHERS}
    assert found_in(parquet(kept, compression="zstd", write_page_index=True), sought) == {}
    assert found_in(manifest({2: min(OTHERS).encode()[:16]}, {}, OTHERS[0]), sought) == {}
    for number, text in enumerate(erased):
        planted = (
            parquet({"contact": [OTHERS[0], text]}, compression="zstd"),
            parquet({"contact": [text]}, compression="none", use_dictionary=False),
            manifest({2: text.encode()}, {}, None),
            gzip.compress(json.dumps({"event": {"mail": text}}).encode()),
        )
        assert found_in(planted[number % len(planted)], sought), text


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_files_of_a_real_lake(archive: Path, tmp_path: Path) -> None:
    unpack(archive, tmp_path)
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    orders = [
        table
        for content in files
        if content.startswith(b"PAR1")
        and "customer" in (table := pq.read_table(io.BytesIO(content))).column_names
    ]
    customers = sorted({each for table in orders for each in table["customer"].to_pylist() if each})
    assert len(customers) > 5
    sought = SoughtValues([SoughtValue("customer", text) for text in customers[:1]])
    parts = {part for content in files for part in found_in(content, sought)}
    assert {
        "values of column customer", "page of column customer", "statistics of column customer",
        "bound of a manifest",
    } <= parts  # fmt: skip
    other = SoughtValues([SoughtValue("customer", customers[0][::-1])])
    assert not [content for content in files if found_in(content, other)]


PLACES = [
    (SoughtValue("id", "4711001"), "id=4711001"),
    (SoughtValue("country", "Peru"), "country=Peru"),
    (SoughtValue("name", "Conan O'Brien"), "name=Conan O%27Brien"),
    (SoughtValue("city", "São Paulo"), "city=S%C3%A3o+Paulo"),
    (SoughtValue("group", "A/B Testing"), "group=A%2FB Testing"),
]


@pytest.mark.parametrize(("value", "folder"), PLACES)
def test_values_in_the_names_of_partitions(value: SoughtValue, folder: str) -> None:
    sought = SoughtValues([value])
    mark = f"wh/l.db/t_hudi/{folder}/.hoodie_partition_metadata"
    assert found_in(b"", sought, mark) == {"name": value.column}
    others = sought.elsewhere()
    is_found = value.is_anywhere
    assert found_in(b"", others, mark) == ({"name": value.column} if is_found else {})
    assert found_in(b"", sought, mark.replace(folder, f"{value.column}=other")) == {}


@pytest.mark.parametrize(("value", "folder"), PLACES)
def test_values_in_paths_of_hudis_timeline(value: SoughtValue, folder: str) -> None:
    stats = {folder: [{"path": f"{folder}/1.parquet"}]}
    texts = ({"partitionToWriteStats": stats}, {"files": {"1": f"{folder}/1.parquet"}})
    for content in texts:
        commit = json.dumps(content).encode()
        found = found_in(commit, SoughtValues([value]), "t_hudi/.hoodie/1.commit")
        assert found["JSON"] == value.column
    # Elsewhere such a text is part of a value of another row.
    row = json.dumps({"url": "/.hoodie?a=b/id=4711001"}).encode()
    assert found_in(row, SoughtValues([PLACES[0][0]]), "t/data/1.json") == {}
