"""What is converted row by row for Spark and Trino is what DuckDB computes in SQL."""

from __future__ import annotations

import duckdb
import pytest

from cdclake.debezium.types import parse_type
from cdclake.iceberg.dialect import SPARK, TRINO
from cdclake.verify.engine_texts import decoder
from cdclake.verify.type_rules import texts_of

STORED = {
    "bit(10)": ["BQI=", "AAA=", "", "not base64"],
    "bit varying": ["/w==", "AQA="],
    "real[]": ["[1.5,null,-0.0]", "[]", '["NaN",0.1]', "no json", "{}"],
    "double precision[]": ["[0.1,1e300]", '["Infinity"]'],
    "point": ['{"x":1.5,"y":-2.0}', '{"x":1}', "7"],
    "text": ["a|b", ""],
    "bit(1)": ["true"],
}


@pytest.mark.parametrize(
    ("declared", "stored"), [(kind, text) for kind, texts in STORED.items() for text in texts]
)
def test_a_stored_text_is_converted_as_duckdb_does(declared: str, stored: str) -> None:
    kind = parse_type(declared)
    assert kind is not None
    with duckdb.connect() as session:
        session.execute("CREATE TABLE t AS SELECT ?::VARCHAR AS x", [stored])
        found = session.execute(f"SELECT {texts_of(kind).lake.replace('{x}', 'x')} FROM t")
        [[expected]] = found.fetchall()
    for dialect in (SPARK, TRINO):
        assert decoder(kind, dialect)(stored) == expected
