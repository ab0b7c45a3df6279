"""Comparison of a job's plan with the columns of the tables that it reads and writes.

The stream evolves both tables of a source table before it appends events under a newer plan; it
does not wait for jobs. A job that went on with an older plan would write NULL for values of those
events, and its stamp would say that they are applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdclake import naming
from cdclake.delivery_remedies import column_added_by
from cdclake.errors import TableError
from cdclake.iceberg.evolution import promotes
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Table


def check_declaration(lake: LakeTables, table: Table) -> None:
    """Raise TableError if changelog or state has columns or values that the plan cannot hold.

    Call it after reading how far the changelog is to be applied: events that are appended later
    may need other columns, but are not applied. Columns of a narrower type than declared are
    accepted, since their values fit.
    """
    check_changelog(lake, table)
    _check(lake, table, table.name, {c.name: c.column_type.state for c in table.columns})


def check_changelog(lake: LakeTables, table: Table) -> None:
    """Raise TableError if the changelog has columns or values that the plan cannot hold."""
    _check(lake, table, table.changes, {c.name: c.column_type.log for c in table.columns})


def _check(lake: LakeTables, table: Table, name: str, declared: Mapping[str, str]) -> None:
    differing = sorted(_differing(declared, dict(lake.read(name).dtypes)))
    if differing:
        raise TableError(
            table.name,
            f"{name} does not have the columns of this job's plan: {', '.join(differing)}",
            "start the job again, as its plan may be out of date; if it fails again,"
            f" {column_added_by(table.name, table.delivery)}",
        )


def _differing(declared: Mapping[str, str], stored: Mapping[str, str]) -> Iterator[str]:
    for name, kind in declared.items():
        if name not in stored or not promotes(stored[name], kind):
            yield name
    yield from (name for name in stored if name not in declared and not naming.is_ours(name))
