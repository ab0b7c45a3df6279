"""SQL statements of a comparison, for PostgreSQL and for the engines that read the lake.

A row is packed into one text of its columns' texts, and so is a key; both sides hash them equally.
Rows are distributed into buckets by their key's hash, so that two sums show if a bucket's rows are
equal. Rows are read in the order of that hash, which does not depend on the sides' collations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cdclake.postgres.quoting import identifier, literal
from cdclake.verify.columns import ComparedColumn

Engine = Literal["postgres", "duckdb", "spark", "trino"]

ROWS_PER_BUCKET = 5000
_MAX_COLUMNS_PER_CALL = 50  # PostgreSQL's functions take 100 arguments
_HASH_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Comparable:
    """One side of a table: the relation's name in SQL, and its columns.

    `search_path` is the statement that sets PostgreSQL's for the relation.
    """

    engine: Engine
    relation: str
    columns: tuple[ComparedColumn, ...]
    search_path: str = ""

    def bucket_sums(self, buckets: int, only: int | None = None) -> str:
        """Return a SELECT of bucket, number of rows, and sum of their hashes.

        With `only`, the sum is computed for that bucket only; rows are counted for all.
        """
        key = self._hash(self._joined([column for column in self.columns if column.in_key]))
        row = self._hash(self._joined(self.columns))
        bucket = f"(h % {buckets})"
        summed = "r" if only is None else f"CASE WHEN {bucket} = {only} THEN r END"
        if self.engine in ("spark", "trino"):  # their sum of integers has 64 bits
            summed = f"CAST({summed} AS decimal(38,0))"
        return (
            f"SELECT {bucket} AS bucket, count(*), coalesce(sum({summed}), 0)\n"
            f"FROM (SELECT {key} AS h, {row} AS r FROM {self.relation}) AS hashed GROUP BY 1"
        )

    def rows_of_buckets(self, buckets: int, wanted: Iterable[int]) -> str:
        """Return a SELECT of hash, key and texts of the rows in the wanted buckets, in order."""
        listed = ", ".join(map(str, wanted))
        return self._rows(f"h % {buckets} IN ({listed})")

    def rows_of_hashes(self, relation: str) -> str:
        """Return the same SELECT for the rows whose key's hash is in the SELECT `relation`."""
        return self._rows(f"h IN ({relation})")

    def rows_of_keys(self, keys: Sequence[Sequence[str]]) -> str:
        """Return the same SELECT for keys in the form of the columns' `show`, using an index."""
        key = [column for column in self.columns if column.in_key]
        names = ", ".join(identifier(column.source_name) for column in key)
        spelled = (", ".join(literal(value) for value in values) for values in keys)
        if len(key) == 1:
            condition = f"{names} IN ({', '.join(spelled)})"
        else:
            condition = f"({names}) IN ({', '.join(f'({values})' for values in spelled)})"
        return self._rows("true", condition)

    def _rows(self, outer: str, inner: str = "true") -> str:
        texts = ", ".join(f"{self._text(c)} AS {_name(i)}" for i, c in enumerate(self.columns))
        rows = f"SELECT {texts} FROM {self.relation} WHERE {inner}"
        key = _packed(self._key_names())
        keyed = f"SELECT {key} AS k, * FROM ({rows}) AS v"
        hashed = f"SELECT {self._hash('k')} AS h, * FROM ({keyed}) AS w"
        order = 'h, k COLLATE "C"' if self.engine == "postgres" else "h, k"
        names = ", ".join(self._names())
        return f"SELECT h, k, {names} FROM ({hashed}) AS x\nWHERE {outer} ORDER BY {order}"

    def _text(self, column: ComparedColumn) -> str:
        return column.source if self.engine == "postgres" else column.lake

    def _names(self) -> list[str]:
        return [_name(index) for index in range(len(self.columns))]

    def _key_names(self) -> list[str]:
        return [_name(index) for index, column in enumerate(self.columns) if column.in_key]

    def _joined(self, columns: Sequence[ComparedColumn]) -> str:
        return _packed([self._text(column) for column in columns])

    def _hash(self, text: str) -> str:
        """Return an SQL expression of 60 bits of MD5 as an integer."""
        if self.engine == "postgres":
            return f"('x' || md5(convert_to({text}, 'UTF8')))::bit(60)::bigint"
        if self.engine == "spark":
            return f"CAST(conv(substr(md5({text}), 1, {_HASH_DIGITS}), 16, 10) AS BIGINT)"
        if self.engine == "trino":
            return f"from_base(substr(to_hex(md5(to_utf8({text}))), 1, {_HASH_DIGITS}), 16)"
        return f"CAST('0x' || substr(md5({text}), 1, {_HASH_DIGITS}) AS BIGINT)"


def _name(index: int) -> str:
    return f"c{index}"


def _packed(texts: Sequence[str]) -> str:
    """Return an SQL expression that packs several texts into one, reversibly and with NULLs."""
    marked = [f"coalesce(replace({text}, '|', '||'), '|n')" for text in texts]
    if len(marked) == 1:
        return marked[0]
    chunks = [
        ", ".join(marked[at : at + _MAX_COLUMNS_PER_CALL])
        for at in range(0, len(marked), _MAX_COLUMNS_PER_CALL)
    ]
    return " || '|,' || ".join(f"concat_ws('|,', {chunk})" for chunk in chunks)


def unpacked(key: str) -> list[str | None]:
    """Return the texts of a packed key.

    >>> unpacked("1|,a||b|,|n"), unpacked("a||b")
    (['1', 'a|b', None], ['a|b'])
    """
    parts = re.split(r"(?<!\|)((?:\|\|)*)\|,", key)  # a separator after an even number of bars
    texts = [left + bars for left, bars in zip(parts[:-1:2], parts[1::2], strict=True)]
    texts.append(parts[-1])
    return [None if text == "|n" else text.replace("||", "|") for text in texts]
