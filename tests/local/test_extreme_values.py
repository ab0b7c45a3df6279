"""The ends of every type's range through the real connector: it converts all but known ones.

Of a value that it cannot convert Debezium writes NULL, and only a warning into the worker's log.
Before `ArrayConverter` these were arrays of numeric with NaN or an infinity, and arrays of an enum
with a NULL.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from cdclake.debezium.types import ARRAY_ELEMENTS, TYPES
from cdclake.local.lake.topics import end_offsets
from tests.local.running import lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

TOPIC = "extremes.public.extremes"
TEXTS = ["", "NULL", "null", "{}", "\\", '"', "a,b", "\x01\x7f\u0085\u2028", "\U0001f600"]
INSTANTS = ["infinity", "-infinity", "1582-10-10", "0001-12-31 BC"]
RANGE = ["empty", "(,)"]
VALUES = {
    "boolean": ["true", "false"],
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "oid": ["0", "4294967295"],
    "real": ["NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45", "-0"],
    "double precision": ["NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "5e-324", "-0"],
    "numeric": ["NaN", "Infinity", "-Infinity", "1e1000", "1e-1000", "-0.0"],
    "money": ["-92233720368547758.08", "92233720368547758.07"],
    "date": [*INSTANTS, "4714-11-24 BC", "5874897-12-31"],
    "timestamp": [*INSTANTS, "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999"],
    "timestamptz": [*INSTANTS, "4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00"],
    "time": ["00:00:00", "24:00:00", "23:59:59.999999"],
    "timetz": ["00:00:00+15:59", "24:00:00-15:59", "23:59:59.999999+15:59:59", "24:00:00+00"],
    "interval": ["infinity", "-infinity", "178000000 years", "-178000000 years", "0.000001 s"],
    "bytea": ["", "\\x00ff", "\\x5c22"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "enum": ["sad", "NULL", "", 'it\'s "ok"'],
    **dict.fromkeys(("text", "varchar", "char", "citext"), TEXTS),
    "json": ["null", "1e400", "[]", '"\\u0000"'],
    "jsonb": ["null", "1e400", "[]"],
    "xml": ["", "<a/>"],
    "hstore": ["", "a=>NULL", '""=>""'],
    "ltree": ["", "a.b"],
    "inet": ["::1", "0.0.0.0/0", "::ffff:1.2.3.4/128"],
    "cidr": ["::/0", "0.0.0.0/0"],
    "macaddr": ["00:00:00:00:00:00"],
    "macaddr8": ["ff:ff:ff:ff:ff:ff:ff:ff"],
    "bit": ["0", "1"],
    "varbit": ["", "1", "0" * 130],
    "tsvector": ["", "'a':1A"],
    "int4range": [*RANGE, "[-2147483648,2147483647)"],
    "int8range": RANGE,
    "numrange": [*RANGE, "[NaN,NaN]", "[-Infinity,Infinity]"],
    "tsrange": [*RANGE, "[-infinity,infinity]"],
    "tstzrange": [*RANGE, "[-infinity,infinity]"],
    "daterange": [*RANGE, "[-infinity,infinity]"],
    "point": ["(NaN,0)", "(Infinity,-Infinity)", "(1e308,-0)"],
}
UNCONVERTED = re.compile(r"Failed to properly convert data value for .* of type (\w+)")
# A zone with seconds, and in arrays several dimensions (docs/types.md): the value is NULL.
KNOWN = {"timetz", "_timetz"}
SQL_NAMES = {"enum": "mood", "char": "char(5)"}


def test_the_connector_converts_all_but_known_values(tmp_path: Path) -> None:
    assert set(VALUES) == set(TYPES) - {"vector"}  # an extension that the tests' server lacks
    columns, rows = columns_of(), rows_of()
    file = tmp_path / "extremes.yaml"
    file.write_text(pipeline())
    with lake_in(tmp_path) as lake, lake.connect() as source:
        for extension in ("hstore", "citext", "ltree"):
            source.execute(f"CREATE EXTENSION {extension}")
        source.execute("CREATE TYPE mood AS ENUM ('sad', 'NULL', '', 'it''s \"ok\"')")
        declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        source.execute(f"CREATE TABLE extremes (id int PRIMARY KEY, {declared})".encode())
        source.execute("ALTER TABLE extremes REPLICA IDENTITY FULL")
        insert = f"INSERT INTO extremes VALUES (%s{', %s' * len(columns)})".encode()
        for number, row in enumerate(rows):
            source.execute(insert, (number, *row))
        lake.run("up", str(file))
        kafka = lake.endpoints.kafka
        for number, row in enumerate(rows):
            source.execute(insert, (100 + number, *row))
        source.execute("UPDATE extremes SET id = id + 100 WHERE id >= 100")
        # Of a changed key: a delete with its tombstone, and a create.
        expected = 5 * len(rows)
        lake.eventually(lambda: end_offsets(kafka, [TOPIC])[TOPIC][0] == expected, seconds=60)
        log = (lake.home / "logs" / "connect.log").read_text()
        assert set(UNCONVERTED.findall(log)) == KNOWN


def columns_of() -> dict[str, str]:
    """Names and types in PostgreSQL; an array's number is odd."""
    columns = {}
    for number, base in enumerate(VALUES):
        columns[f"c{2 * number}"] = SQL_NAMES.get(base, base)
        if base in ARRAY_ELEMENTS:
            columns[f"c{2 * number + 1}"] = f"{SQL_NAMES.get(base, base)}[]"
    return columns


def rows_of() -> list[list[str | None]]:
    """Each type's values in turn, in arrays next to a NULL, and arrays of another shape."""
    longest = max(map(len, VALUES.values())) + 3
    return [
        list(chain.from_iterable(cells(base, values, row) for base, values in VALUES.items()))
        for row in range(longest)
    ]


def cells(base: str, values: list[str], row: int) -> list[str | None]:
    scalar = values[row] if row < len(values) else None
    if base not in ARRAY_ELEMENTS:
        return [scalar]
    first, last = quoted(values[0]), quoted(values[-1])
    shapes = ["{}", "{NULL}", f"[3:4]={{{last},NULL}}", f"{{{{{first}}},{{{last}}}}}"]
    array = shapes[(row - len(values)) % len(shapes)] if scalar is None else None
    return [scalar, array or f"{{{quoted(scalar or '')},NULL}}"]


def quoted(element: str) -> str:
    return '"' + element.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pipeline() -> str:
    lines = ["version: 1", "name: extremes", "source: {database: postgres}", "tables:"]
    lines += ["  public.extremes:", "    key: [id]", "    replica_identity: full", "    columns:"]
    lines.append("      id: integer")
    bases = list(VALUES)
    for name in columns_of():
        base, is_array = bases[int(name[1:]) // 2], int(name[1:]) % 2
        kind = f"{base}[]" if is_array else "char(5)" if base == "char" else base
        lines.append(f"      {name}: '{kind}'")
    return "\n".join(lines) + "\n"
