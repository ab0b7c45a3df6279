"""The statements of a comparison, for PostgreSQL and for DuckDB.

A row is one text of its columns' texts, a key likewise; both sides hash them alike. Rows are dealt
into buckets by their key's hash, so that two sums say whether a bucket's rows agree, and rows are
read in the order of that hash, which is the same on both sides whatever their collations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cdclake.postgres.quoting import identifier, literal
from cdclake.verify.columns import ComparedColumn

Engine = Literal["postgres", "duckdb"]

ROWS_PER_BUCKET = 5000
_MAX_COLUMNS_PER_CALL = 50  # PostgreSQL's functions take 100 arguments
_HASH_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Comparable:
    """One side of a table: the relation's name as it stands in SQL, and its columns."""

    engine: Engine
    relation: str
    columns: tuple[ComparedColumn, ...]

    def bucket_sums(self, buckets: int, only: int | None = None) -> str:
        """SELECT of bucket, its rows, the sum of their hashes; with `only`, of that bucket's alone.

        Every bucket's rows are counted in any case.
        """
        key = self._hash(self._joined([column for column in self.columns if column.in_key]))
        row = self._hash(self._joined(self.columns))
        bucket = f"(h % {buckets})"
        summed = "r" if only is None else f"CASE WHEN {bucket} = {only} THEN r END"
        return (
            f"SELECT {bucket} AS bucket, count(*), coalesce(sum({summed}), 0)\n"
            f"FROM (SELECT {key} AS h, {row} AS r FROM {self.relation}) AS hashed GROUP BY 1"
        )

    def rows_of_buckets(self, buckets: int, wanted: Iterable[int]) -> str:
        """SELECT of hash, key and texts of the rows in the wanted buckets, in order."""
        listed = ", ".join(map(str, wanted))
        return self._rows(f"h % {buckets} IN ({listed})")

    def rows_of_hashes(self, relation: str) -> str:
        """The same of the rows whose key's hash the SELECT `relation` gives."""
        return self._rows(f"h IN ({relation})")

    def rows_of_keys(self, keys: Sequence[Sequence[str]]) -> str:
        """The same of the rows of these keys, spelled as the columns' `show` does; by an index."""
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
        """60 bits of MD5 as a whole number."""
        if self.engine == "postgres":
            return f"('x' || md5(convert_to({text}, 'UTF8')))::bit(60)::bigint"
        return f"CAST('0x' || substr(md5({text}), 1, {_HASH_DIGITS}) AS BIGINT)"


def _name(index: int) -> str:
    return f"c{index}"


def _packed(texts: Sequence[str]) -> str:
    """One text of several, from which they could be told apart again, NULLs included."""
    marked = [f"coalesce(replace({text}, '|', '||'), '|n')" for text in texts]
    if len(marked) == 1:
        return marked[0]
    chunks = [
        ", ".join(marked[at : at + _MAX_COLUMNS_PER_CALL])
        for at in range(0, len(marked), _MAX_COLUMNS_PER_CALL)
    ]
    return " || '|,' || ".join(f"concat_ws('|,', {chunk})" for chunk in chunks)


def unpacked(key: str) -> list[str | None]:
    """The texts that a packed key was made of.

    >>> unpacked("1|,a||b|,|n"), unpacked("a||b")
    (['1', 'a|b', None], ['a|b'])
    """
    parts = re.split(r"(?<!\|)((?:\|\|)*)\|,", key)  # a mark after whole doubled bars
    texts = [left + bars for left, bars in zip(parts[:-1:2], parts[1::2], strict=True)]
    texts.append(parts[-1])
    return [None if text == "|n" else text.replace("||", "|") for text in texts]
