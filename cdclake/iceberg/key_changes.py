"""SQL for the views that carries unchanged values over from the old key of a changed key.

An UPDATE of a key arrives as a delete of the old key and a creation of the new one. A TOAST value
that did not change is in neither: the old key has it. The merge looks it up before it applies the
creation (`cdclake.jobs.apply.key_changes`); until then a view must look it up itself.
"""

from __future__ import annotations

from cdclake import naming
from cdclake.iceberg.dialect import Dialect
from cdclake.iceberg.key_values import key_values
from cdclake.iceberg.schemas import SHARED_COLUMNS
from cdclake.plan import Table

# Not the previous commit: a connector that restarts between the two may write another one.
_PAIR = (naming.EPOCH, naming.LSN, naming.TX_ID)


def completed_changes(table: Table, *, pending: str, changes: str, dialect: Dialect) -> str:
    """Return CTEs; the last one, `completed`, has the pending changes with the old keys' values.

    `changes` is the whole changelog. It is only read in joins that start from the pending creations
    without a value: engines stop immediately if there are none. `pending` is a SELECT, since a CTE
    that is read twice would be materialized in memory.

    Trino allows a query too few stages for the joins: there, such values stay NULL.
    """
    columns = table.may_be_unsent
    if not columns or dialect.engine == "trino":
        return f"completed AS ({pending})"
    ctes = {
        "creations": f"SELECT * FROM ({pending}) AS pending WHERE {lacks_values()}",
        "moves": _moves(table, changes, dialect),
        "links": _links(table),
        "rooted": _rooted(dialect),
        "spans": _spans(),
        "own": _own_values(table, columns, changes, dialect),
        "origins": _origins(columns),
        "completed": _completed(table, columns, pending, dialect),
    }
    return ",\n".join(f"{name} AS ({query})" for name, query in ctes.items())


def lacks_values(event: str = "") -> str:
    """Return a condition: the event is the creation of a changed key that lacks a value."""
    return f"{event}{naming.OP} = 'c' AND {event}{naming.UNAVAILABLE} IS NOT NULL"


def _moves(table: Table, changes: str, dialect: Dialect) -> str:
    """Return each delete and each creation without a value, with the key's newest such creation.

    The condition is one expression over both sides, so that no engine scans the changelog before it
    knows that no row can match. There is no bound by position: the delete of a pair may have a
    higher position than the creation, in another partition or after a connector's restart. A row's
    lock keeps its LSNs in order, so key changes that are followed by them never lead in a circle.
    """
    keys = key_values(table, dialect, "e.")
    selected = [
        *(f"e.{fact} AS {fact}" for fact in (*_PAIR, naming.OP, naming.POSITION)),
        *(f"{key} AS __key_{index}" for index, key in enumerate(keys)),
        f"max(CASE WHEN e.{naming.OP} = 'c' THEN e.{naming.POSITION} END) "
        f"OVER (PARTITION BY {', '.join(keys)} ORDER BY e.{naming.EPOCH}, e.{naming.LSN}) "
        "AS __born_at",
    ]
    newest = f"SELECT max({naming.EPOCH}) AS __epoch FROM creations HAVING count(*) > 0"
    return (
        f"SELECT /*+ BROADCAST(newest) */ {', '.join(selected)}\n"
        f"FROM {changes} AS e JOIN ({newest}) AS newest ON CASE WHEN e.{naming.OP} = 'd' "
        f"OR ({lacks_values('e.')}) THEN e.{naming.EPOCH} END <= newest.__epoch"
    )


def _links(table: Table) -> str:
    """Return each key change: the creation, and the old key from its creation to its delete.

    If an earlier key change has left the same birth, the row is another one, inserted since under
    that key: it has no birth, and its values begin at `__since`.
    """
    deleted = f"FILTER (WHERE {naming.OP} = 'd')"
    created_at = f"max({naming.POSITION}) FILTER (WHERE {naming.OP} = 'c')"
    left_at = f"max({naming.POSITION}) {deleted}"
    old = ", ".join(f"max(__key_{i}) {deleted} AS __old_{i}" for i in range(len(table.key)))
    pairs = (
        f"SELECT {naming.EPOCH}, {naming.LSN}, {created_at} AS __created_at, "
        f"{left_at} AS __left_at, max(__born_at) {deleted} AS __birth, {old}\n"
        f"FROM moves GROUP BY {', '.join(_PAIR)} "
        f"HAVING {created_at} IS NOT NULL AND {left_at} IS NOT NULL"
    )
    alone = "CASE WHEN __birth IS NULL THEN __created_at END"
    before = (
        f"lag(__left_at) OVER (PARTITION BY __birth, {alone} ORDER BY {naming.EPOCH}, {naming.LSN})"
    )
    return (
        "SELECT *, CASE WHEN __before IS NULL THEN __birth END AS __born_at, "
        "coalesce(__before, __birth, '') AS __since\n"
        f"FROM (SELECT *, {before} AS __before FROM ({pairs}) AS pairs) AS ordered"
    )


def _rooted(dialect: Dialect) -> str:
    """Return each key change with its root, which all key changes of one row's history share.

    The root is the earliest known creation. Each round replaces a pointer by the pointer at its
    target, so a chain of any length takes as many rounds as its length has binary digits.
    """
    if dialect.engine == "spark":  # Spark 3.5 has no recursive CTE
        pointer = "struct(__created_at, coalesce(__born_at, __created_at))"
        pointers = f"map_from_entries(collect_list({pointer}))"
        jump = "transform_values(roots, (at, root) -> coalesce(try_element_at(roots, root), root))"
        rounds = "sequence(0, CAST(ceil(log2(count(*) + 1)) AS int))"
        return (
            f"SELECT inline(map_entries(aggregate({rounds}, {pointers}, (roots, n) -> {jump}))) "
            "AS (__created_at, __root)\nFROM links"
        )
    return (
        "WITH RECURSIVE jumps AS (\n"
        "SELECT __created_at, coalesce(__born_at, __created_at) AS __root, 0 AS __round, "
        "true AS __moved FROM links\nUNION ALL "
        "SELECT a.__created_at, coalesce(b.__root, a.__root), a.__round + 1, "
        "coalesce(b.__root <> a.__root, false)\n"
        "FROM jumps AS a LEFT JOIN jumps AS b ON b.__created_at = a.__root "
        "WHERE (SELECT bool_or(__moved) FROM jumps))\n"
        "SELECT __created_at, max_by(__root, __round) AS __root FROM jumps GROUP BY __created_at"
    )


def _spans() -> str:
    """Return the key changes with the same root as a creation: the earlier keys of its row.

    `__born_at` is NULL if the row was inserted under that key, with all its values.
    """
    roots = (
        "SELECT r.__root FROM rooted AS r "
        f"JOIN creations AS c ON r.__created_at = c.{naming.POSITION}"
    )
    return (
        "SELECT l.*, r.__root FROM links AS l JOIN rooted AS r ON r.__created_at = l.__created_at\n"
        f"WHERE r.__root IN ({roots})"
    )


def _own_values(table: Table, columns: tuple[str, ...], changes: str, dialect: Dialect) -> str:
    """Return the newest values under each old key, in structs that preserve sent NULLs."""
    held = []
    for index, name in enumerate(columns):
        listed = dialect.contains(f"e.{naming.UNAVAILABLE}", name)
        value = dialect.struct([("held", f"e.{dialect.name(name)}")])
        where = f"FILTER (WHERE e.{naming.UNAVAILABLE} IS NULL OR NOT {listed})"
        held.append(f"max_by({value}, e.{naming.POSITION}) {where} AS cdc__value_{index}")
        held.append(f"max(e.{naming.POSITION}) {where} AS cdc__at_{index}")
    values = enumerate(key_values(table, dialect, "e."))
    keys = " AND ".join(f"{value} = s.__old_{index}" for index, value in values)
    return (
        f"SELECT /*+ BROADCAST(s) */ s.__created_at, {', '.join(held)}\n"
        f"FROM {changes} AS e JOIN spans AS s ON {keys} AND e.{naming.POSITION} < s.__left_at "
        f"AND e.{naming.POSITION} >= s.__since\n"
        f"WHERE e.{naming.OP} NOT IN ('d', 't') GROUP BY s.__created_at"
    )


def _origins(columns: tuple[str, ...]) -> str:
    """Return the newest values that each creation's row had under all of its earlier keys."""
    until = "OVER (PARTITION BY s.__root ORDER BY s.__created_at)"
    held = ", ".join(
        f"max_by(o.cdc__value_{i}, o.cdc__at_{i}) {until} AS cdc__value_{i}"
        for i in range(len(columns))
    )
    return (
        f"SELECT s.__created_at, {held}\n"
        "FROM spans AS s LEFT JOIN own AS o ON o.__created_at = s.__created_at"
    )


def _completed(table: Table, columns: tuple[str, ...], pending: str, dialect: Dialect) -> str:
    """Return other changes unchanged, and the creations with the found values filled in."""
    facts = [fact for fact, _ in SHARED_COLUMNS if fact != naming.UNAVAILABLE]
    plain = [dialect.name(column.name) for column in table.columns] + facts
    unavailable = f"c.{naming.UNAVAILABLE}"
    values = {column: f"c.{column}" for column in plain}
    found = []
    for index, name in enumerate(columns):
        origin, value = f"o.cdc__value_{index}", dialect.name(name)
        is_found = f"{origin} IS NOT NULL AND {dialect.contains(unavailable, name)}"
        values[value] = f"CASE WHEN {is_found} THEN {origin}.held ELSE c.{value} END AS {value}"
        found.append(f"CASE WHEN {is_found} THEN {dialect.text(name)} END")
    return (
        f"SELECT {', '.join(plain)}, {naming.UNAVAILABLE}\n"
        f"FROM ({pending}) AS pending WHERE NOT ({lacks_values()})\nUNION ALL "
        f"SELECT /*+ BROADCAST(o) */ {', '.join(values.values())}, "
        f"{dialect.without(unavailable, found)} AS {naming.UNAVAILABLE}\n"
        f"FROM creations AS c LEFT JOIN origins AS o ON o.__created_at = c.{naming.POSITION}"
    )
