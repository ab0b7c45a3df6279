"""`python adbc_load.py QUESTION`: a first load of one table into one Iceberg table by PyIceberg.

Runs in the environment of dlt (build/venvs/dlt), without the packages of cdclake. The question is a
JSON file with `dsn` (a URL), `schema`, `table` and `folder`.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
from adbc_driver_postgresql import dbapi
from pyiceberg.catalog.sql import SqlCatalog

BYTES_AT_ONCE = 128 * 1024 * 1024  # of Arrow memory: the size of a data file
NUMBERS = {"price": pa.decimal128(12, 2)}  # the driver gives numeric as text


def main() -> None:
    question = json.loads(Path(sys.argv[1]).read_text())
    lake = Path(question["folder"]) / "lake"
    lake.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}")
    catalog.create_namespace("bench")
    with dbapi.connect(question["dsn"]) as connection, connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{question["schema"]}"."{question["table"]}"')
        rows = cursor.fetch_record_batch()
        schema = pa.schema([pa.field(f.name, NUMBERS.get(f.name, f.type)) for f in rows.schema])
        location = f"file://{lake}/bench/{question['table']}"
        table = catalog.create_table(f"bench.{question['table']}", schema, location=location)
        held: list[pa.Table] = []
        with table.transaction() as transaction:
            for batch in rows:
                held.append(typed(batch, schema))
                if sum(each.nbytes for each in held) >= BYTES_AT_ONCE:
                    transaction.append(pa.concat_tables(held))
                    held = []
            if held:
                transaction.append(pa.concat_tables(held))


def typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        stored = column.storage if isinstance(column, pa.ExtensionArray) else column
        columns.append(stored if stored.type == field.type else stored.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


if __name__ == "__main__":
    main()
