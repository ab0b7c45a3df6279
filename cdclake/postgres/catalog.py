"""Tables of the source as its catalog describes them, and their assembly from catalog rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cdclake.debezium.types import ColumnType, parse_type

Row = Sequence[Any]
TableId = tuple[str, str]  # schema, table

# Types of extensions that Debezium writes in a specific form (docs/types.md).
_EXTENSION_TYPES = frozenset({"citext", "hstore", "ltree", "vector"})
# Of money, in the lake and in the connector's session.
_MONEY_DIGITS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """Column of the source; `shown` is PostgreSQL's spelling of its type, including domains."""

    name: str
    shown: str
    type: ColumnType | None  # domains resolved; None: the lake does not support the type
    nullable: bool = True
    generated: bool = False  # computed from other columns: never in the stream
    numbered: bool = False  # an identity, a sequence or a generated uuid fills it
    number: int = 0  # never used again in its table, even if the column is dropped
    unvalidated: bool = False  # NOT NULL, but NOT VALID (since PostgreSQL 18): rows may have NULL
    money_digits: int | None = None  # of money: fractional digits, by the source's lc_monetary
    labels: Mapping[str, str] = field(default_factory=dict)  # of an enum, by oid
    mistaken_for: tuple[str, ...] = ()  # other types that Debezium may find by the type's name

    @property
    def described(self) -> str:
        """PostgreSQL's spelling of the type, with what makes this money unsupported."""
        if self.money_digits in (None, _MONEY_DIGITS):
            return self.shown
        return f"{self.shown} with {self.money_digits} fractional digits (lc_monetary)"

    @property
    def resolved(self) -> str:
        """PostgreSQL's spelling of the type, for a domain that of its base type."""
        is_extension = self.type is not None and self.type.base in _EXTENSION_TYPES
        if self.type is None or is_extension or "." not in self.shown:  # a domain has its schema
            return self.shown
        return str(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueIndex:
    """Unique index; `identifies` if PostgreSQL would accept it as a replica identity."""

    name: str
    columns: tuple[str, ...]
    primary: bool = False
    identifies: bool = True  # valid, not deferrable, not partial, on columns NOT NULL
    root: str | None = None  # the partitioned table's index, if this is a part of it
    immediate: bool = True  # False: deferrable, so that two rows may share a key for a while


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Table or leaf partition, with everything that decides whether its updates can be logged."""

    schema: str
    table: str
    kind: str = "r"  # pg_class.relkind
    persistence: str = "p"  # p: logged, u: unlogged, t: temporary
    identity: Literal["d", "f", "n", "i"] = "d"  # pg_class.relreplident
    identity_index: str | None = None
    indexes: tuple[UniqueIndex, ...] = ()
    oid: int = 0
    file: int = 0  # changes when the table is rewritten; 0: partitioned
    joined: str = ""  # of a partition: the transactions that attached it and its ancestors
    created_attached: bool = False  # the same transactions created them

    @property
    def id(self) -> TableId:
        """Return schema and table."""
        return (self.schema, self.table)

    @property
    def source(self) -> str:
        """Return `schema.table`, for messages."""
        return f"{self.schema}.{self.table}"

    @property
    def unlogged(self) -> bool:
        """Check whether its changes are in no event."""
        return self.persistence == "u"

    @property
    def primary_key(self) -> UniqueIndex | None:
        """Return the primary key's index."""
        return next((index for index in self.indexes if index.primary), None)

    def index(self, name: str | None) -> UniqueIndex | None:
        """Return the unique index of this name, or the part of the partitioned table's index."""
        own = (index for index in self.indexes if name in (index.name, index.root))
        return next(own, None) if name is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable(Relation):
    """Table of the source with its columns and, if partitioned, its leaves."""

    columns: tuple[SourceColumn, ...] = ()
    leaves: tuple[Relation, ...] = ()
    partition_of: TableId | None = None  # the root, for a partition
    inherited: bool = False  # plain inheritance: it shows the rows of other tables
    row_security: bool = False
    rows: int = 0  # the planner's estimate
    owned: bool = True  # whether the session may alter, publish and grant it

    @property
    def by_name(self) -> Mapping[str, SourceColumn]:
        """Return the columns by name."""
        return {column.name: column for column in self.columns}


def column_type(
    resolved: str, array: bool, kind: str, schema: str, extension: str | None, dimensions: int
) -> ColumnType | None:
    """Return the type of a column with resolved domains; None if the lake does not support it.

    For an array, `kind`, `schema` and `extension` are those of the element. Arrays of domains and
    of several dimensions are not supported: Debezium does not transfer them completely.
    """
    brackets = "[]" if array else ""
    if dimensions > 1 or kind == "d":
        return None
    if kind == "e":
        return parse_type(f"enum{brackets}")
    if schema == "pg_catalog":
        # Debezium treats `interval day to second` like any other interval, and so do we.
        return parse_type(f"interval{brackets}" if resolved.startswith("interval") else resolved)
    if extension in _EXTENSION_TYPES:
        return parse_type(resolved.rsplit(".", 1)[-1])
    return None


def read_columns(rows: Iterable[Row]) -> dict[int, tuple[SourceColumn, ...]]:
    """Return the rows of `queries.COLUMNS`, by relation."""
    found: dict[int, list[SourceColumn]] = defaultdict(list)
    for oid, name, shown, resolved, array, kind, schema, extension, dims, *flags in rows:
        nullable, generated, numbered, number, unvalidated, money_digits, labels, others = flags
        kind_of = column_type(resolved, array, kind, schema, extension, dims)
        column = SourceColumn(
            name=name,
            shown=shown + "[]" * (dims - 1),
            type=kind_of if money_digits in (None, _MONEY_DIGITS) else None,
            nullable=nullable,
            generated=generated,
            numbered=numbered,
            number=number,
            unvalidated=unvalidated,
            money_digits=money_digits,
            labels=labels or {},
            mistaken_for=tuple(others),
        )
        found[oid].append(column)
    return {oid: tuple(columns) for oid, columns in found.items()}


def read_result(rows: Iterable[Row]) -> tuple[SourceColumn, ...]:
    """Return the rows of `queries.RESULT_COLUMNS`; the number of an array's dimensions is open."""
    return tuple(
        SourceColumn(
            name=name, shown=shown, type=column_type(shown, array, kind, schema, extension, 1)
        )
        for name, shown, array, kind, schema, extension in rows
    )


def read_indexes(
    rows: Iterable[Row],
) -> tuple[dict[int, tuple[UniqueIndex, ...]], dict[int, str]]:
    """Return the rows of `queries.INDEXES` and each replica identity, by relation."""
    found: dict[int, list[UniqueIndex]] = defaultdict(list)
    identities: dict[int, str] = {}
    for oid, name, columns, primary, identity, identifies, root, immediate in rows:
        index = UniqueIndex(
            name=name,
            columns=tuple(columns),
            primary=primary,
            identifies=identifies,
            root=root,
            immediate=immediate,
        )
        found[oid].append(index)
        if identity:
            identities[oid] = name
    return {oid: tuple(indexes) for oid, indexes in found.items()}, identities


def assemble(
    relations: Sequence[Row], columns: Iterable[Row], indexes: Iterable[Row], wanted: set[int]
) -> tuple[SourceTable, ...]:
    """Return the tables of the oids `wanted`, from the rows of the three queries."""
    columns_of = read_columns(columns)
    indexes_of, identity_of = read_indexes(indexes)
    ids: dict[int, TableId] = {row[0]: (row[1], row[2]) for row in relations}
    leaves_of: dict[int, list[Relation]] = defaultdict(list)
    rows_of: dict[int, int] = defaultdict(int)

    def common(row: Row) -> dict[str, Any]:
        names = ("schema", "table", "kind", "persistence", "identity")
        return {
            **dict(zip(names, row[1:6], strict=True)),
            "identity_index": identity_of.get(row[0]),
            "indexes": indexes_of.get(row[0], ()),
            "oid": row[0],
            "file": row[11],
            "joined": row[12],
            "created_attached": row[13],
        }

    for row in relations:
        if row[6] is not None and row[3] != "p":
            leaves_of[row[6]].append(Relation(**common(row)))
            rows_of[row[6]] += row[9]
    return tuple(
        SourceTable(
            **common(row),
            columns=columns_of.get(row[0], ()),
            leaves=tuple(leaves_of[row[0]]),
            partition_of=None if row[6] is None else ids.get(row[6]),
            inherited=row[7],
            row_security=row[8],
            rows=rows_of[row[0]] if row[3] == "p" else row[9],
            owned=row[10],
        )
        for row in relations
        if row[0] in wanted
    )
