"""Proposed declaration of one table of the source, or the reason why there is none.

Every proposal has passed `check_table`, which `up` runs later: the two never disagree. `up` knows
whether the database is embedded, so a proposal only notes what it refuses in a user's database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cdclake import naming
from cdclake.debezium.toast_placeholder import is_lost_when_unsent
from cdclake.plan import Column, Table
from cdclake.postgres.admission import check_kind, check_table, check_validated
from cdclake.postgres.candidates import Key
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.new_partitions import check_new_partitions
from cdclake.postgres.quoting import identifier
from cdclake.postgres.refusal import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Proposed declaration of one table; refused if there is a `reason`.

    If a refused one has no `declared`, no line can admit it; `remedy` states what can.
    """

    source: SourceTable
    declared: Table | None = None
    omitted: tuple[str, ...] = ()  # generated columns
    reason: str = ""
    remedy: str = ""
    note: str = ""  # what to check before relying on it


def unfit_columns(table: SourceTable) -> dict[str, str]:
    """Return the columns that must be excluded, with the reasons."""
    unfit: dict[str, str] = {}
    for column in table.columns:
        if column.generated:
            continue
        name = naming.lake_name(column.name)
        if column.type is None:
            unfit[column.name] = f"cdclake does not support the type {column.described}"
        elif column.mistaken_for:
            unfit[column.name] = f"Debezium may take {', '.join(column.mistaken_for)} for its type"
        elif naming.is_reserved_column(name):
            unfit[column.name] = f"the name {name} is reserved in the lake"
    return unfit


def flowing_columns(table: SourceTable) -> frozenset[str]:
    """Return the columns that can reach the lake."""
    unfit = unfit_columns(table)
    return frozenset(c.name for c in table.columns if not c.generated and c.name not in unfit)


def enforced_keys(table: SourceTable) -> list[Key]:
    """Return the keys that PostgreSQL always enforces, the primary key first."""
    flowing = flowing_columns(table)
    return [i.columns for i in table.indexes if i.identifies and flowing.issuperset(i.columns)]


def needs_candidate(table: SourceTable) -> bool:
    """Check whether no index of the table can be its key, so that a key must be guessed."""
    return not check_kind(table) and not enforced_keys(table) and not _deferrable_keys(table)


def _deferrable_keys(table: SourceTable) -> list[Key]:
    """Return the keys of deferrable constraints: the table is refused until one is immediate."""
    return [index.columns for index in table.indexes if not index.immediate]


def propose_table(table: SourceTable, pipeline: str, guess: Key | None, version: int) -> Proposal:
    """Return the proposal for one table; `guess` is a key for a table that `needs_candidate`."""
    broken = check_kind(table)
    if broken:
        return Proposal(source=table, reason=broken[0].message, remedy=broken[0].remedy)
    if not flowing_columns(table):
        reason = "it has no column that could flow"
        return Proposal(source=table, reason=reason, remedy="leave it out")
    return _Look(table, pipeline, guess, version).propose()


@dataclass(frozen=True, slots=True)
class _Look:
    """Possible declarations of one table, the best first."""

    table: SourceTable
    pipeline: str
    guess: Key | None
    version: int

    def propose(self) -> Proposal:
        """Propose the table, without a reason if it can flow with every non-generated column.

        Omitting a column is the user's choice: such a table is refused, with the lines to add.
        """
        table = self.table
        reasons = [f"column {identifier(n)}: {why}" for n, why in unfit_columns(table).items()]
        declared = self._first(self._as_it_is(), may_alter=False)
        if declared is None:
            reasons.append(self._why_not().message)
            declared = self._first(self._with_identity(), may_alter=True)
        if table.row_security:
            reasons.append("row-level security hides rows from a role without BYPASSRLS")
        return Proposal(
            source=table,
            declared=declared,
            omitted=tuple(column.name for column in table.columns if column.generated),
            reason="; ".join(filter(None, reasons)),
            remedy="" if declared is not None else self._remedy(),
            note=self._note(declared),
        )

    def _first(self, options: Iterator[Table], *, may_alter: bool) -> Table | None:
        admitted = (option for option in options if not self._refusals(option, may_alter))
        return next(admitted, None)

    def _refusals(self, declared: Table, may_alter: bool) -> list[Refusal]:
        """Return the refusals of `up`, without those for privileges, which depend on the user."""
        return check_table(
            declared,
            replace(self.table, owned=True),
            role=naming.source_object(self.pipeline),
            may_alter=may_alter,
            sees_all_rows=True,
            version=self.version,
        )

    def _as_it_is(self) -> Iterator[Table]:
        """Yield declarations with the replica identity that the source has."""
        keys = enforced_keys(self.table) or ([self.guess] if self.guess else [])
        for plain in map(self._declare, keys):
            if self.table.identity == "f":
                yield _full(plain)
            elif self.table.identity == "i" and self.table.identity_index is not None:
                yield _by_index(plain, self.table.identity_index)
            elif self.table.identity == "d":
                yield plain

    def _with_identity(self) -> Iterator[Table]:
        """Yield declarations with an identity that must first be set in the source."""
        flowing = flowing_columns(self.table)
        for index in self.table.indexes:
            if index.identifies and flowing.issuperset(index.columns):
                plain = self._declare(index.columns)
                declared = replace(plain, replica_identity_declared=True)
                yield declared if index.primary else _by_index(plain, index.name)
        for plain in map(self._declare, enforced_keys(self.table)):
            yield _full(plain)
            yield _without_lost(plain)
        if self.guess is not None:
            yield _full(self._declare(self.guess))

    def _declare(self, key: Key) -> Table:
        table = self.table
        flowing = flowing_columns(table)
        return Table(
            schema=table.schema,
            table=table.table,
            name=naming.lake_name(table.table),
            topic=naming.topic_name(self.pipeline, table.schema, table.table),
            key=tuple(naming.lake_name(name) for name in key),
            columns=tuple(
                Column(source=c.name, name=naming.lake_name(c.name), type=str(c.type))
                for c in table.columns
                if c.name in flowing
            ),
            excluded=tuple(unfit_columns(table)),
        )

    def _remedy(self) -> str:
        """Return what admits a table that no line admits as it is."""
        if _deferrable_keys(self.table) and not enforced_keys(self.table):
            return self._why_not().remedy
        columns = self._declare(()).columns
        unvalidated = filter(None, (check_validated(each, self.table) for each in columns))
        if enforced_keys(self.table) and (refusal := next(unvalidated, None)) is not None:
            return refusal.remedy
        if self.table.primary_key is not None:
            return "rename or change the columns of its key in the source"
        return (
            "add a primary key to it; or, if some of its columns are never NULL and together never"
            " the same in two rows, declare the table with them as `key: [COLUMN, ...]` and with"
            " `replica_identity: full`"
        )

    def _why_not(self) -> Refusal:
        guessed = [self.guess] if self.guess else []
        keys = enforced_keys(self.table) or guessed or _deferrable_keys(self.table) or [()]
        refusals = self._refusals(self._declare(keys[0]), may_alter=False)
        unknown = "no column or index is known to identify its rows"
        return refusals[0] if refusals else Refusal(self.table.source, unknown, "")

    def _note(self, declared: Table | None) -> str:
        if declared is None:
            return ""
        if refusals := check_new_partitions(declared, self.table):
            return f"with --source and on AWS it is refused: {refusals[0].message}"
        if enforced_keys(self.table):
            return ""
        key = ", ".join(column.source for column in declared.key_columns)
        return (
            f"nothing enforces the key ({key}); no row repeats it today: make sure that none ever"
            " will, not even within a transaction, and that it is never NULL"
        )


def _without_lost(plain: Table) -> Table:
    """Return the declaration without columns that need identity full, which may be impossible."""
    lost = {c.source for c in plain.columns if is_lost_when_unsent(c.column_type)}
    return replace(
        plain,
        columns=tuple(column for column in plain.columns if column.source not in lost),
        excluded=plain.excluded + tuple(sorted(lost)),
    )


def _full(plain: Table) -> Table:
    return replace(plain, replica_identity="full", replica_identity_declared=True)


def _by_index(plain: Table, index: str) -> Table:
    return replace(
        plain,
        replica_identity="index",
        replica_identity_index=index,
        replica_identity_declared=True,
    )
