"""`python dlt_load.py QUESTION`: dlt's first load of one table into one Iceberg table in a folder.

Runs in dlt's own environment (build/venvs/dlt), so it imports nothing of ours. The question is
a JSON file with `dsn` (a URL), `schema`, `table` and `folder`.
"""

import json
import os
import sys
from pathlib import Path

import dlt
from dlt.sources.sql_database import sql_table

ROWS_AT_ONCE = 100_000


def main() -> None:
    question = json.loads(Path(sys.argv[1]).read_text())
    os.environ["DLT_DATA_DIR"] = f"{question['folder']}/dlt"
    rows = sql_table(
        credentials=question["dsn"],
        schema=question["schema"],
        table=question["table"],
        backend="pyarrow",  # ConnectorX was no faster, and has its own idea of numeric(12,2)
        chunk_size=ROWS_AT_ONCE,
    )
    rows.apply_hints(table_format="iceberg", write_disposition="append")
    pipeline = dlt.pipeline(
        "first_load",
        pipelines_dir=f"{question['folder']}/pipelines",
        destination=dlt.destinations.filesystem(bucket_url=f"file://{question['folder']}/lake"),
        dataset_name="bench",
    )
    pipeline.run(rows, loader_file_format="parquet")


if __name__ == "__main__":
    main()
