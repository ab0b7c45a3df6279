"""Rehearsal of a schema change: what the lake does when a migration runs in the source."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from cdclake.config.resolve import load_plan
from cdclake.errors import CdcError
from cdclake.jobs.verify.report import TableComparison
from cdclake.local import lifecycle
from cdclake.local.lake.lake import open_lake, running_source
from cdclake.local.lake.source_script import run_local_script
from cdclake.local.process.home import Home
from cdclake.local.status import lake_status
from cdclake.local.verify import verify_lake
from cdclake.plan import Plan, Table
from cdclake.postgres.quoting import identifier, qualified

log = logging.getLogger("cdclake.rehearsal")

STOPS, DIFFERS, REPORTED, GOES_ON = "stops", "differs", "reported", "goes on"
_WAIT_S = 60.0
# An UPDATE may give an identity that is GENERATED ALWAYS, or a generated column, only DEFAULT.
_WRITABLE = """
SELECT attname::text FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
  AND attidentity <> 'a' AND attgenerated = '' ORDER BY attnum LIMIT 1
"""


def rehearse(home: Home, file: Path, schema: Path, migration: Path) -> dict[str, Any]:
    """Run the migration in a lake of `file` over the schema's tables; return what the lake did.

    `home` is an empty lake home. One row of each streamed table is updated, to the values that it
    has, after the migration: an event shows what the declaration alone does not. `ok` is False if a
    table stops or no longer equals the source.

    Raises:
        InputError: if a SQL file cannot be read or a statement of it fails, with its line
    """
    # Without the connectors, which may write to a target outside of the lake.
    plan = replace(load_plan(file), connectors=())
    if plan.new_columns == "declare":  # `up` would write the file; it reports the columns instead
        plan = replace(plan, new_columns="ignore")
    lifecycle.up_bare(home, plan, None)
    run_local_script(home, schema, keep_owners=False)
    lifecycle.up(home, plan, str(file), None, wait=lifecycle.ROWS)
    done = run_local_script(home, migration, keep_owners=False)
    touched = {table.name: _touched(home, table) for table in plan.tables}
    equal, obstacle = _compared(home, plan)
    status = lake_status(home)
    tables = [_outcome(line, touched.get(line["table"]), equal) for line in status["tables"]]
    return {
        "ok": all(table["outcome"] not in (STOPS, DIFFERS) for table in tables),
        "statements": done["statements"],
        "obstacle": obstacle,
        "tables": tables,
    }


def _touched(home: Home, table: Table) -> str | None:
    """Update one row to the values that it has; return why that was not possible."""
    name = qualified(table.schema, table.table)
    dsn, _ = running_source(home)
    try:
        with psycopg.connect(dsn, autocommit=True) as session:
            found = session.execute(_WRITABLE, (name,)).fetchone()
            if found is None:
                return "an UPDATE may set none of its columns: only its declaration was compared"
            column = identifier(found[0])
            row = f"(SELECT ctid FROM {name} LIMIT 1)"
            update = f"UPDATE {name} SET {column} = {column} WHERE ctid = {row}"
            changed = session.execute(update.encode()).rowcount
    except psycopg.Error as error:
        return str(error).splitlines()[0]
    return None if changed else "it has no rows: only its declaration was compared"


def _compared(home: Home, plan: Plan) -> tuple[Mapping[str, bool], str | None]:
    """Return by table whether lake and source are equal, and what prevented a comparison."""
    equal: dict[str, bool] = {}
    obstacle = None
    for table in plan.all_tables:
        try:
            report = verify_lake(open_lake(home), _WAIT_S, table.name)
        except CdcError as error:
            log.info("%s was not compared: %s", table.name, error)
            obstacle = str(error)
            continue
        for compared in report.tables:
            if _is_only_late(compared):
                log.info("%s was not compared: %s", table.name, compared.error)
                obstacle = compared.error
            else:
                equal[compared.table] = compared.ok
    return equal, obstacle


def _is_only_late(compared: TableComparison) -> bool:
    """Check whether nothing differs in a table that may lack changes."""
    return compared.late and replace(compared, error=None).ok


def _outcome(
    line: Mapping[str, Any], untouched: str | None, equal: Mapping[str, bool]
) -> dict[str, Any]:
    changes = [*(line["source_changes"] or ()), *(line["relation_changes"] or ())]
    is_equal = equal.get(line["table"])
    outcome = GOES_ON
    if line["state"] == "stopped":
        outcome = STOPS
    elif is_equal is False:
        outcome = DIFFERS
    elif changes or is_equal is None:
        outcome = REPORTED
    return {
        "table": line["table"],
        "source": line["source"],
        "outcome": outcome,
        "equal": is_equal,
        "quarantined": line["quarantined"],
        "error": line["last_error"],
        "changes": [{"message": c["message"], "remedy": c["remedy"]} for c in changes],
        "untouched": untouched,
    }
