"""The end of a `timestamptz`'s text: Debezium writes the digits that the source's column keeps.

The declared type says too little, since a file may declare `timestamptz(3)` without its precision.
"""

from __future__ import annotations

from cdclake.plan import Column, Table
from cdclake.postgres.quoting import literal, qualified

MOST_DIGITS = 6


def instant_ending(column: Column, table: Table) -> str:
    """Return SQL of the end of `to_char`'s pattern: the fraction, if there is one, and Z.

    Polled tables have no events of Debezium, and always have six digits.
    """
    if table.delivery == "poll":
        return _pattern(str(MOST_DIGITS))
    declared = column.column_type.parameters or (MOST_DIGITS,)
    digits = f"coalesce(({_source_digits(column, table)}), {declared[0]})"
    return f"(SELECT {_pattern('digits')} FROM (SELECT {digits} AS digits) AS of_column)"


def _pattern(digits: str) -> str:
    return f"""(CASE {digits} WHEN 0 THEN '"Z"' ELSE '.FF' || {digits} || '"Z"' END)"""


def _source_digits(column: Column, table: Table) -> str:
    """Return a SELECT of the column's precision; of a domain's, if the column is of one.

    Only one of the types that a domain is made of can have a precision.
    """
    relation = literal(qualified(table.schema, table.table))
    return (
        "WITH RECURSIVE step(type, modifier) AS ("
        "SELECT atttypid, atttypmod FROM pg_attribute"
        f" WHERE attrelid = to_regclass({relation}) AND attname = {literal(column.source)}"
        " UNION ALL SELECT t.typbasetype, t.typtypmod FROM step JOIN pg_type AS t"
        " ON t.oid = step.type WHERE t.typtype = 'd')"
        f" SELECT CASE max(modifier) WHEN -1 THEN {MOST_DIGITS} ELSE max(modifier) END FROM step"
    )
