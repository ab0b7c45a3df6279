"""One table of a source as it could be declared, or why it cannot.

What is proposed has been put to `check_table`, which `up` asks later: the two never disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cdclake import naming
from cdclake.debezium.toast_placeholder import is_lost_when_unsent
from cdclake.plan import Column, Table
from cdclake.postgres.admission import check_kind, check_table
from cdclake.postgres.candidates import Key
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.quoting import identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One table as it could stand in the file; refused if there is a `reason`.

    A refused one whose `declared` is None is admitted by no line; `remedy` says what else would.
    """

    source: SourceTable
    declared: Table | None = None
    omitted: tuple[str, ...] = ()  # generated columns
    reason: str = ""
    remedy: str = ""
    note: str = ""  # what to look at before it is trusted


def unfit_columns(table: SourceTable) -> dict[str, str]:
    """The columns that have to be excluded, and why."""
    unfit: dict[str, str] = {}
    taken: dict[str, str] = {}
    for column in table.columns:
        if column.generated:
            continue
        name = naming.lake_name(column.name)
        if column.type is None:
            unfit[column.name] = f"cdclake does not carry the type {column.shown}"
        elif naming.is_reserved_column(name):
            unfit[column.name] = f"the name {name} is reserved in the lake"
        elif name in taken:
            unfit[column.name] = f"it would be {name} in the lake, like {identifier(taken[name])}"
        else:
            taken[name] = column.name
    return unfit


def flowing_columns(table: SourceTable) -> frozenset[str]:
    """The columns that can reach the lake."""
    unfit = unfit_columns(table)
    return frozenset(c.name for c in table.columns if not c.generated and c.name not in unfit)


def enforced_keys(table: SourceTable) -> list[Key]:
    """The keys that PostgreSQL enforces at every moment, the primary key first."""
    flowing = flowing_columns(table)
    return [i.columns for i in table.indexes if i.identifies and flowing.issuperset(i.columns)]


def needs_candidate(table: SourceTable) -> bool:
    """Whether no index of the table could be its key, so that one has to be guessed."""
    return not check_kind(table) and not enforced_keys(table)


def propose_table(table: SourceTable, pipeline: str, guess: Key | None, version: int) -> Proposal:
    """The proposal for one table; `guess` is a key for a table that `needs_candidate`."""
    broken = check_kind(table)
    if broken:
        return Proposal(source=table, reason=broken[0].message, remedy=broken[0].remedy)
    if not flowing_columns(table):
        reason = "it has no column that could flow"
        return Proposal(source=table, reason=reason, remedy="leave it out")
    return _Look(table, pipeline, guess, version).propose()


@dataclass(frozen=True, slots=True)
class _Look:
    """The declarations that come into question for one table, the best first."""

    table: SourceTable
    pipeline: str
    guess: Key | None
    version: int

    def propose(self) -> Proposal:
        """Without reason if the table can flow as it is, with every column that is not generated.

        To leave a column out is the user's choice: such a table is refused, with the lines.
        """
        table = self.table
        reasons = [f"column {identifier(n)}: {why}" for n, why in unfit_columns(table).items()]
        declared = self._first(self._as_it_is(), may_alter=False)
        if declared is None:
            reasons.append(self._why_not())
            declared = self._first(self._with_identity(), may_alter=True)
        if table.row_security:
            reasons.append("row-level security hides rows from a role without BYPASSRLS")
        remedy = ""
        if declared is None:
            remedy = "add a primary key to it"
            if table.primary_key is not None:
                remedy = "rename or change the columns of its key in the source"
        return Proposal(
            source=table,
            declared=declared,
            omitted=tuple(column.name for column in table.columns if column.generated),
            reason="; ".join(filter(None, reasons)),
            remedy=remedy,
            note=self._note(declared),
        )

    def _first(self, options: Iterator[Table], *, may_alter: bool) -> Table | None:
        admitted = (option for option in options if not self._refusals(option, may_alter))
        return next(admitted, None)

    def _refusals(self, declared: Table, may_alter: bool) -> list[str]:
        """What `up` would say, but for rights: those are a matter of who runs it."""
        refusals = check_table(
            declared,
            replace(self.table, owned=True),
            role=naming.source_object(self.pipeline),
            may_alter=may_alter,
            sees_all_rows=True,
            version=self.version,
        )
        return [refusal.message for refusal in refusals]

    def _as_it_is(self) -> Iterator[Table]:
        """Declarations that ask for the replica identity that the source has."""
        keys = enforced_keys(self.table) or ([self.guess] if self.guess else [])
        for plain in map(self._declare, keys):
            if self.table.identity == "f":
                yield _full(plain)
            elif self.table.identity == "i" and self.table.identity_index is not None:
                yield _by_index(plain, self.table.identity_index)
            elif self.table.identity == "d":
                yield plain

    def _with_identity(self) -> Iterator[Table]:
        """Declarations that ask for an identity which the source would have to be given."""
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

    def _why_not(self) -> str:
        keys = enforced_keys(self.table) or ([self.guess] if self.guess else [()])
        messages = self._refusals(self._declare(keys[0]), may_alter=False)
        return messages[0] if messages else "nothing is known to identify its rows"

    def _note(self, declared: Table | None) -> str:
        if declared is None or enforced_keys(self.table):
            return ""
        key = ", ".join(column.source for column in declared.key_columns)
        return f"nothing enforces the key ({key}); no row repeats it today: make sure none will"


def _without_lost(plain: Table) -> Table:
    """Also without the columns that flow under identity full alone, which may not be had."""
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
