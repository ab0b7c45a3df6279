"""Schema evolution: the changes that a lake table supports in place, and their statements.

Iceberg adds, renames and widens columns without rewriting a file. Any other change would change the
meaning of stored values, so it is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cdclake import naming
from cdclake.debezium.types import ColumnType, event_form
from cdclake.iceberg.ddl import qualified
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import TableSchema

# Iceberg can widen a float to a double, too. But until the pipeline file follows such a change of
# the source, a 0.1 is read as a float: as a double that would be 0.10000000149011612.
_PROMOTIONS = {("int", "bigint")}
# PostgreSQL changes no value when it converts one of these types into another, and sends no event.
_FAMILIES = (
    ("smallint", "integer", "bigint"),
    ("varchar", "text", "enum"),
)


def can_become(old: ColumnType, new: ColumnType) -> bool:
    """Check whether a column of type `old` may be declared as `new` from now on.

    Stored values do not change, so they must mean the same under both types.
    """
    if old.array or new.array or not _same_family(old, new):
        return old == new
    return promotes(old.log, new.log) and promotes(old.state, new.state)


def _same_family(old: ColumnType, new: ColumnType) -> bool:
    if old.base == new.base:
        same = (old.conversion, event_form(old)) == (new.conversion, event_form(new))
        return same and old.base != "char"
    return any(old.base in family and new.base in family for family in _FAMILIES)


def promotes(old: str, new: str) -> bool:
    """Check whether Iceberg can take columns of the type `old` for `new`, with the same values."""
    if old == new or (old, new) in _PROMOTIONS:
        return True
    if not (old.startswith("decimal(") and new.startswith("decimal(")):
        return False
    (old_precision, old_scale), (new_precision, new_scale) = map(_digits, (old, new))
    return new_precision >= old_precision and new_scale == old_scale


def may_widen(kind: str) -> bool:
    """Check whether `promotes` allows the type to become another one."""
    return kind.startswith("decimal(") or any(kind == old for old, _ in _PROMOTIONS)


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = decimal.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def evolve_table(database: str, schema: TableSchema, actual: Mapping[str, str]) -> list[str]:
    """Return ALTER TABLE statements from the `actual` columns (name to Spark type) to `schema`.

    Columns that are not in `schema` keep their values under a reserved name, so that a column that
    is added again starts empty. Raises ValueError for a column that cannot change to its declared
    type.
    """
    target = qualified(database, schema.name)
    declared = {name for name, _ in schema.columns}
    added = [(name, kind) for name, kind in schema.columns if name not in actual]
    statements = [
        f"ALTER TABLE {target} RENAME COLUMN {SPARK.name(name)} TO {SPARK.name(kept)}"
        for name, kept in _dropped(declared, actual).items()
    ]
    if added:
        listed = ", ".join(f"{SPARK.name(name)} {kind}" for name, kind in added)
        statements.append(f"ALTER TABLE {target} ADD COLUMNS ({listed})")
    for name, kind in schema.columns:
        found = actual.get(name, kind)
        if found == kind:
            continue
        if not promotes(found, kind):
            raise ValueError(f"its column {name} is {found} and cannot become {kind}")
        statements.append(f"ALTER TABLE {target} ALTER COLUMN {SPARK.name(name)} TYPE {kind}")
    return statements


def _dropped(declared: Collection[str], actual: Collection[str]) -> dict[str, str]:
    """Return the columns that are no longer declared, with the names that they are kept under."""
    kept: dict[str, str] = {}
    for name in actual:
        if name in declared or naming.is_ours(name):
            continue
        taken = {*actual, *kept.values()}
        names = (naming.dropped_column(name, number) for number in range(1, len(taken) + 2))
        kept[name] = next(free for free in names if free not in taken)
    return kept
