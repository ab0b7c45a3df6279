"""SQL texts of one column on both sides, by its type, its mask and the plan's policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdclake.iceberg.dialect import DUCKDB, Dialect
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.mask_values import hashed, masked
from cdclake.postgres.quoting import identifier
from cdclake.verify import normal
from cdclake.verify.engine_texts import decoder, engine_text
from cdclake.verify.normal import Normal
from cdclake.verify.type_rules import TypeTexts, texts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedColumn:
    """Column as `verify` compares it; `source` and `lake` are SQL expressions of text or NULL."""

    name: str  # in the lake
    source_name: str
    source: str
    lake: str
    source_normal: Normal
    lake_normal: Normal
    show: Normal
    seekable: bool
    in_key: bool
    decode: Normal = normal.as_it_is  # of the lake's text, where SQL cannot


def compared_columns(
    table: Table,
    plan: Plan,
    lengths: Mapping[str, int | None],
    dialect: Dialect = DUCKDB,
) -> tuple[ComparedColumn, ...]:
    """Return the table's columns in declared order; `lengths` are the source's, for masks.

    `dialect` is that of the engine that reads the lake.
    """
    return tuple(_compared(column, table, plan, lengths, dialect) for column in table.columns)


def as_source(columns: tuple[ComparedColumn, ...]) -> tuple[ComparedColumn, ...]:
    """Return columns for a comparison whose source is the lake, as DuckDB reads it."""
    return tuple(replace(column, source_normal=column.lake_normal) for column in columns)


def _compared(
    column: Column,
    table: Table,
    plan: Plan,
    lengths: Mapping[str, int | None],
    dialect: Dialect,
) -> ComparedColumn:
    texts = _masked(column, texts_of(column.column_type), lengths.get(column.source))
    x, lake_x = identifier(column.source), dialect.name(column.name)
    is_duckdb = dialect.engine == "duckdb"
    lake = texts.lake if is_duckdb else engine_text(column.column_type, dialect)
    source = texts.source.replace("{x}", x)
    if texts.unheld is not None and not plan.refuses_unheld(table, column):
        source = f"CASE WHEN NOT ({texts.unheld.replace('{x}', x)}) THEN {source} END"
    return ComparedColumn(
        name=column.name,
        source_name=column.source,
        source=source,
        lake=lake.replace("{x}", lake_x),
        source_normal=texts.source_normal,
        lake_normal=texts.lake_normal,
        show=texts.show,
        seekable=texts.seekable,
        in_key=column.name in table.key,
        decode=normal.as_it_is if is_duckdb else decoder(column.column_type, dialect),
    )


def _masked(column: Column, texts: TypeTexts, length: int | None) -> TypeTexts:
    if column.mask == "truncate":
        assert column.truncate_to is not None
        if length is not None and length <= column.truncate_to:
            return texts  # whole, whatever its UTF-16 units
        shortened = f"left({texts.source}, {column.truncate_to})"
        cut = normal.cut(column.truncate_to)  # PostgreSQL counts characters, the mask UTF-16 units
        return replace(texts, source=shortened, source_normal=cut, show=cut)
    if column.mask is not None and column.mask != "hash":
        unheld = None if texts.unheld is None else masked(column.mask, texts.unheld)
        return replace(texts, source=masked(column.mask, texts.source), unheld=unheld)
    if column.mask == "hash":
        cut_to = None if length is None else str(length)
        return replace(texts, source=hashed("{x}", texts.source, cut_to))
    return texts
