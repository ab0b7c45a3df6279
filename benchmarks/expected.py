"""What a table has to hold in the end, worked out by DuckDB with no code of anybody measured.

It orders by LSN and offset, as the changes were made, and knows neither positions nor merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

_ROW = (
    "id, customer_id, quantity, price::DECIMAL(12, 2), status, note, paid,"
    " epoch_us(created_at::TIMESTAMP), epoch_us(updated_at::TIMESTAMP)"
)


def differences(
    base: Path | None, batches: Sequence[Path], found: Path, where: str = "true"
) -> str | None:
    """How the rows in the Parquet files of `found` differ from what they have to be; None if not.

    `found` has the declared columns, in any order of rows; a row too often is a difference. Without
    `base` the table began empty. `where` is the condition of the changes that count.
    """
    changes = ", ".join(f"'{file}'" for file in batches)
    with duckdb.connect(config={"threads": 2, "memory_limit": "4GB"}) as duck:
        duck.execute(
            f"CREATE TABLE newest AS SELECT * FROM read_parquet([{changes}]) WHERE {where} QUALIFY "
            "row_number() OVER (PARTITION BY id ORDER BY cdc_lsn DESC, cdc_offset DESC) = 1"
        )
        expected = f"SELECT {_ROW} FROM newest WHERE cdc_op <> 'd'"
        if base is not None:
            kept = f"SELECT {_ROW} FROM {rows_of_base(base)} ANTI JOIN newest USING (id)"
            expected = f"{kept} UNION ALL {expected}"
        return _compared(duck, expected, f"SELECT {_ROW} FROM '{found}/*.parquet'")


def same_rows(
    columns: Sequence[str], batches: Sequence[Path], found: Path, where: str = "true"
) -> str | None:
    """How the rows in `found` differ from those of the batches in these columns; None if not.

    Of both only the rows count of which `where` is true.
    """
    changes = ", ".join(f"'{file}'" for file in batches)
    row = ", ".join(columns)
    with duckdb.connect(config={"threads": 2, "memory_limit": "4GB"}) as duck:
        expected = f"SELECT {row} FROM read_parquet([{changes}]) WHERE {where}"
        return _compared(duck, expected, f"SELECT {row} FROM '{found}/*.parquet' WHERE {where}")


def digest_of(duck: duckdb.DuckDBPyConnection, relation: str) -> object:
    """Number of rows and keys, and a hash over the declared columns, whatever the order of rows."""
    return _digest(duck, f"SELECT {_ROW} FROM {relation}")


def rows_of_base(base: Path) -> str:
    """The relation of the rows that a table begins with."""
    return f"read_parquet('{base}/*.parquet')"


def _compared(duck: duckdb.DuckDBPyConnection, expected: str, actual: str) -> str | None:
    if _digest(duck, expected) == _digest(duck, actual):
        return None
    lacking = _count(duck, f"({expected}) EXCEPT ALL ({actual})")
    surplus = _count(duck, f"({actual}) EXCEPT ALL ({expected})")
    return f"{lacking} rows are missing or other than expected, {surplus} are not expected"


def _digest(duck: duckdb.DuckDBPyConnection, rows: str) -> object:
    query = f"SELECT count(*), count(DISTINCT id), sum(hash(r)::HUGEINT) FROM ({rows}) AS r"
    return duck.execute(query).fetchone()


def _count(duck: duckdb.DuckDBPyConnection, rows: str) -> int:
    found = duck.execute(f"SELECT count(*) FROM ({rows})").fetchone()
    assert found is not None
    return int(found[0])
