"""Saved query of the live rows as of any commit time, for Athena, Trino and Spark.

`cdclake sql --as-of` has the same rows in DuckDB, also of changelogs that Firehose writes: these
have no sweeps, and their floor at an earlier time takes more than one query.
"""

from __future__ import annotations

from cdclake.iceberg.as_of_view import as_of_view, first_complete
from cdclake.iceberg.saved_queries import ATHENA, Engine
from cdclake.plan import Plan, Table

AS_OF = "live rows as of a commit time"


def as_of_query(table: Table, plan: Plan, engine: Engine = ATHENA) -> dict[str, str]:
    """Return the SELECT by its name, or nothing for a changelog that Firehose writes.

    Its `?` is the commit time. It fails for a time before the first snapshot was complete, or
    beyond `history_days`, where old events may be collapsed.
    """
    if table.delivery == "firehose":
        return {}
    dialect = engine.dialect
    changes = engine.table(plan.lake_database, table.changes)
    moment = "(SELECT cdc__at FROM asked)"
    complete = first_complete(table, changes=f"SELECT * FROM {changes}", dialect=dialect)
    kept = f"current_timestamp - interval '{plan.history_days}' day"
    oldest = f"greatest(coalesce(({complete}), {dialect.instant(0)}), {kept})"
    message = f"'ask for a commit time since ' || CAST(cdc__oldest AS {dialect.string_type})"
    is_kept = f"CASE WHEN cdc__at < cdc__oldest THEN {dialect.failure(message)} ELSE true END"
    rows = as_of_view(table, changes=changes, moment=moment, dialect=dialect)
    select = (
        f"WITH asked AS (SELECT CAST(? AS {dialect.instant_type}) AS cdc__at),\n"
        f"kept AS (SELECT {oldest} AS cdc__oldest)\n"
        f"SELECT * FROM ({rows}) AS live\n"
        f"WHERE (SELECT {is_kept} FROM asked CROSS JOIN kept)"
    )
    return {AS_OF: select}
