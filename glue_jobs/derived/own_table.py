"""Tables that a refresh has created, as opposed to other tables of the same name."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.derived_table import DerivedTable
from cdclake.iceberg.schemas import DERIVED_PROPERTY, KEY_PROPERTY
from cdclake.jobs.derived.external_table import ExternalTable
from cdclake.jobs.iceberg.lake_tables import LakeTables


def is_own(properties: Mapping[str, str], *, is_noted: bool) -> bool:
    """Check whether a refresh created the table with these properties.

    Tables of earlier versions do not have the property; the noted progress of a refresh stands in
    for it (`is_noted`). A state has a key: its name was that of a derived table before.
    """
    return DERIVED_PROPERTY in properties or (is_noted and KEY_PROPERTY not in properties)


def check_format(lake: LakeTables, table: DerivedTable) -> None:
    """Raise TableError if the catalog has the table in another format than the declared one.

    A refresh would write the whole result before the catalog refuses it, and leave it there.
    """
    if not table.stored or not lake.exists(table.name):
        ExternalTable(lake.database, table.name).check(table)
