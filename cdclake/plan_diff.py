"""Difference between two plans: which tables join, leave and change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdclake import naming
from cdclake.column_problems import column_problems, has_retyped_column, predecessor
from cdclake.errors import START_AGAIN, InputError
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.source_names import can_be_read_again

_OF_TYPES = "for a type, remove the column from the file and follow the steps above; otherwise "


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDiff:
    """Difference between a plan and the one that the lake streamed before."""

    is_first: bool
    joining: tuple[Table, ...] = ()
    widened: tuple[Table, ...] = ()  # with new columns, still without values in the lake
    renamed: tuple[Table, ...] = ()  # with columns that are declared as renamed
    reshaped: tuple[Table, ...] = ()  # with any change in the declaration of columns
    kept: tuple[Table, ...] = ()  # tables of both plans
    leaving: tuple[Table, ...] = ()
    by_signal: bool = True  # False: a full snapshot follows in any case

    def all_snapshotted(self) -> PlanDiff:
        """Return the same difference for a full snapshot of every table."""
        return replace(self, by_signal=False)

    def since(self, published: Iterable[Plan]) -> PlanDiff:
        """Return the difference for jobs that may have had these plans after the compared one.

        They dropped the columns that a plan lacked, and the connector skipped its missing tables.
        One that cannot be read again does not join again: the publication omits it, which is
        reported.
        """
        if self.is_first:
            return self
        plans = [{table.source: table for table in plan.tables} for plan in published]

        def differing(differs: Callable[[Table, Table], bool]) -> tuple[Table, ...]:
            return tuple(
                table
                for table in self.kept
                if any(table.source in p and differs(p[table.source], table) for p in plans)
            )

        skipped = tuple(
            table
            for table in self.kept
            if can_be_read_again(table) and any(table.source not in p for p in plans)
        )
        return replace(
            self,
            joining=_united(self.joining, skipped),
            widened=_united(self.widened, differing(_new_columns)),
            reshaped=_united(self.reshaped, differing(_other_columns)),
        )

    def adapted(self, renamed: Collection[str], unread: Collection[str]) -> PlanDiff:
        """Return the difference adapted to the source's state (tables as `schema.table`).

        A column renamed before the file declared it has values that are in no event of the lake. A
        table with `unread` rows or changes joins again: it was missing from the publication, or its
        partitions changed, or it was created again.
        """
        if self.is_first:
            return self
        late = tuple(table for table in self.renamed if table.source in renamed)
        lost = tuple(t for t in self.kept if t.source in unread)
        return replace(
            self, widened=_united(self.widened, late), joining=_united(self.joining, lost)
        )

    @property
    def changes_tables(self) -> bool:
        """True if a running connector needs another list of tables."""
        return not self.is_first and bool(self.joining or self.leaving or self.widened)

    @property
    def read_now(self) -> tuple[Table, ...]:
        """Tables whose rows the connector reads: all in a new epoch, otherwise by signal."""
        if not self.by_signal:
            return _united(self.joining, self.kept)
        return self.joining if self.is_first else self.lacking

    @property
    def lacking(self) -> tuple[Table, ...]:
        """Tables with rows or values that the lake lacks."""
        return _united(self.joining, self.widened)


def compare(before: Plan | None, after: Plan) -> PlanDiff:
    """Compute the difference between two plans; raise InputError if it cannot be applied."""
    if before is None:
        return PlanDiff(is_first=True, joining=after.tables)
    compare_stored(before, after)
    known = {table.source: table for table in before.tables}
    kept = [(known[t.source], t) for t in after.tables if t.source in known]
    return PlanDiff(
        is_first=False,
        joining=tuple(table for table in after.tables if table.source not in known),
        widened=tuple(new for old, new in kept if _new_columns(old, new)),
        renamed=tuple(new for old, new in kept if _renamed_columns(old, new)),
        reshaped=tuple(new for old, new in kept if _other_columns(old, new)),
        kept=tuple(new for _, new in kept),
        leaving=tuple(t for t in before.tables if t.source not in {new.source for _, new in kept}),
    )


def compare_stored(
    before: Plan,
    after: Plan,
    elsewhere: str = "",
    removed: Sequence[Table] = (),
    place_of: Callable[[Table], str] | None = None,
) -> None:
    """Raise InputError if the lake's tables cannot be continued under the plan `after`.

    `removed` are tables that the lake has from earlier plans, as they were declared last.
    `elsewhere` names a lake that is not the one on this machine, which the remedy then leaves out.
    `place_of` returns the place of a table in the pipeline file, for the message.
    """
    pairs = _continued(before, after, removed)
    known = (*removed, *before.all_tables, *after.all_tables)
    taken = {name for table in known for name in naming.lake_objects(table.name)}
    problems = [*_lake_problems(before, after), *_name_problems(before, after, removed)]
    for old, new in pairs:
        found = _pair_problems(old, new, taken, is_back=old in removed)
        place = place_of(new) if found and place_of is not None else ""
        problems += [f"{place}{each}" for each in found]
    if problems:
        raise _refusal(problems, elsewhere, before, after, pairs)


def compare_appended(before: Plan, after: Plan, elsewhere: str = "") -> None:
    """Raise InputError like `compare_stored`, for a lake with only web logs and put tables.

    No table goes on, so its name and databases may change.
    """
    if problems := _name_problems(before, after, ()):
        raise _refusal(problems, elsewhere, before, after, ())


def _refusal(
    problems: Sequence[str],
    elsewhere: str,
    before: Plan,
    after: Plan,
    pairs: Sequence[tuple[Table, Table]],
) -> InputError:
    remedy = _remedy_elsewhere if elsewhere else _remedy
    return InputError(
        f"cannot apply this pipeline file to {elsewhere or 'the running lake'}: "
        + "; ".join(problems),
        remedy(before, after, pairs),
    )


def _continued(before: Plan, after: Plan, removed: Sequence[Table]) -> list[tuple[Table, Table]]:
    """Return the tables of `after` that would go on with stored ones, each after the stored one.

    A table that joins goes on with the one that had its lake name, or that of its changelog or of
    another relation.
    """
    streamed = {table.source: table for table in before.all_tables}
    stored = _stored_names(before, removed)

    def stored_by_name(table: Table) -> Table | None:
        met = (stored.get(name) for name in naming.lake_objects(table.name))
        return stored.get(table.name) or next(filter(None, met), None)

    found = ((streamed.get(t.source) or stored_by_name(t), t) for t in after.all_tables)
    return [(old, new) for old, new in found if old is not None]


def _pair_problems(old: Table, new: Table, taken: set[str], *, is_back: bool) -> list[str]:
    """Return why the stored table cannot go on as the declared one."""
    names = (f"{new.name}_{number}" for number in range(2, len(taken) + 3))
    free = next(n for n in names if taken.isdisjoint(naming.lake_objects(n)))
    line = f"`name: {free}`"
    if old.source != new.source:
        return [
            f"{new.source}: the lake has the rows of {old.source} under the name {old.name}; write"
            f" {line} below {new.source}"
        ]
    problems = _table_problems(old, new)
    if problems and is_back:
        kept = f"the lake may have {new.name} from an earlier `cdclake up`"
        return [f"{new.source}: {kept}; write {line}, or declare it as before", *problems]
    return problems


def _remedy(before: Plan, after: Plan, pairs: Sequence[tuple[Table, Table]]) -> str:
    """Return what to do about a refused file: another pipeline belongs into another home."""
    other = "stream this file in another lake with `CDCLAKE_HOME=FOLDER cdclake up FILE`"
    if _lake_problems(before, after):
        return f"{other}; or undo these changes; or delete this lake with `cdclake down --purge`"
    return (
        f"{_of_types(pairs)}undo these changes; or remove the table, run `cdclake up FILE`, and add"
        f" it again under another `name:`; or {other}; or start over with `cdclake down --purge`"
    )


def _remedy_elsewhere(before: Plan, after: Plan, pairs: Sequence[tuple[Table, Table]]) -> str:
    """Return what to do about a file that a deployment, or the lake of another file, refuses."""
    if not _lake_problems(before, after):
        return f"{_of_types(pairs)}undo these changes; or {START_AGAIN}"
    return "undo these changes; or stream the file in another home or another environment"


def _of_types(pairs: Sequence[tuple[Table, Table]]) -> str:
    """Return the words about changed types, whose steps are in the message; "" without any."""
    changed = any(has_retyped_column(mine, table) for mine, table in pairs)
    return _OF_TYPES if changed else ""


def _lake_problems(before: Plan, after: Plan) -> list[str]:
    fixed = {
        "the pipeline's name": (before.name, after.name),
        "source.database": (before.source_database, after.source_database),
        "lake.database": (before.lake_database, after.lake_database),
        "lake.format_version": (before.format_version, after.format_version),
    }
    return [
        f"{what} changed from {old!r} to {new!r}"
        for what, (old, new) in fixed.items()
        if old != new
    ]


def _stored_names(before: Plan, removed: Sequence[Table]) -> dict[str, Table]:
    """Return the stored tables by their names and those of their relations."""
    return {
        name: table
        for table in (*removed, *before.all_tables)
        for name in naming.lake_objects(table.name)
    }


def _name_problems(before: Plan, after: Plan, removed: Sequence[Table]) -> list[str]:
    """Refuse names that would pass between source, derived and appended tables."""
    if before.lake_database != after.lake_database:
        return []
    tables = {name: table.source for name, table in _stored_names(before, removed).items()}
    derived = {each.name: f"derived.{each.name}" for each in before.derived}
    appended = _appended_names(before)
    of_derived = ((each.name, f"derived.{each.name}") for each in after.derived)
    of_appended = _appended_names(after).items()
    return [
        *_passed_names(_names_of_tables(after), derived | appended, "write another `name:`"),
        *_passed_names(of_derived, tables | appended, "rename the derived table"),
        *_passed_names(of_appended, tables | derived, "rename it"),
    ]


def _passed_names(
    declared: Iterable[tuple[str, str]], stored: Mapping[str, str], remedy: str
) -> Iterator[str]:
    """Yield the problem of each name, given with its declaration, that is of another stored one."""
    for name, place in declared:
        if name in stored:
            yield f"{place}: the lake may have the rows of {stored[name]} in {name}; {remedy}"


def _names_of_tables(plan: Plan) -> Iterator[tuple[str, str]]:
    for table in plan.all_tables:
        yield from ((name, table.source) for name in naming.lake_objects(table.name))


def _appended_names(plan: Plan) -> dict[str, str]:
    """Return the tables of web logs and put tables, each with its key in the pipeline file."""
    return {
        table: f"{key}.{stream.name}"
        for key, streams in (("weblogs", plan.web_logs), ("puts", plan.puts))
        for stream in streams
        for table in stream.tables
    }


def _table_problems(before: Table, after: Table) -> list[str]:
    problems = []
    if "poll" in (before.delivery, after.delivery):
        if "firehose" in (before.delivery, after.delivery):
            problems.append(f"{after.source}: Firehose's changelog cannot be continued by polls")
    elif before.delivery != after.delivery:
        problems.append(f"{after.source}: `delivery` changed to {after.delivery}")
    elif before.topic != after.topic:
        problems.append(f"{after.source}: its topic changed from {before.topic} to {after.topic}")
    if before.name != after.name:
        problems.append(f"{after.source}: its lake name changed from {before.name} to {after.name}")
    if before.key != after.key:
        problems.append(
            f"{after.source}: the key changed from {list(before.key)} to {list(after.key)}"
        )
    if before.deletes != after.deletes:
        problems.append(f"{after.source}: `deletes` changed to {after.deletes}")
    return [*problems, *column_problems(before, after)]


def _columns(table: Table) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    return table.columns, table.excluded


def _other_columns(before: Table, after: Table) -> bool:
    return _columns(before) != _columns(after)


def _new_columns(before: Table, after: Table) -> bool:
    return any(predecessor(column, before) is None for column in after.columns)


def _renamed_columns(before: Table, after: Table) -> bool:
    found = ((column, predecessor(column, before)) for column in after.columns)
    return any(old is not None and old.source != column.source for column, old in found)


def _united(one: tuple[Table, ...], other: tuple[Table, ...]) -> tuple[Table, ...]:
    return one + tuple(table for table in other if table not in one)
