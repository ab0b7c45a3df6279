"""Saved queries about a table, as text to choose from, without any value filled in.

The state contains all applied changes; the changelog contains all streamed changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdclake import naming
from cdclake.debezium.refusals import WITH_VALUE
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.iceberg.dialect import SPARK as SPARK_SQL
from cdclake.iceberg.dialect import TRINO, Dialect
from cdclake.iceberg.event_identity import copy_number
from cdclake.iceberg.incomplete_rows import incomplete_rows, shown_keys
from cdclake.plan import Table
from cdclake.web_logs.row import BODY_BYTES_SENT, REMOTE_ADDR, REQUEST, STATUS, TIME_LOCAL

_CASES = " ".join(f"WHEN '{op}' THEN '{name}'" for op, name in naming.OPERATIONS.items())
# Without the value that broke a quality rule, which would make a group of each row.
_REASON = f"split_part(reason, '{WITH_VALUE}', 1)"
_OPERATION_NAME = f"CASE {naming.OP} {_CASES} END"
_SMALL_FILE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Engine:
    """Engine's names of the lake's tables; the rest of the queries is equal in all engines."""

    quote: str
    dialect: Dialect
    catalog: tuple[str, ...] = ()  # prefix of the database, if the engine needs one
    metadata: str = "."  # between a table and a table of its metadata

    def name(self, *parts: str) -> str:
        """Return the quoted name of these parts."""
        return ".".join(f"{self.quote}{part}{self.quote}" for part in parts)

    def table(self, database: str, table: str) -> str:
        """Return the table's qualified name."""
        return self.name(*self.catalog, database, table)

    def metadata_of(self, database: str, table: str, what: str) -> str:
        """Return the name of one of the table's metadata tables."""
        if self.metadata == ".":
            return self.name(*self.catalog, database, table, what)
        return self.table(database, f"{table}{self.metadata}{what}")


ATHENA = Engine('"', TRINO, metadata="$")
SPARK = Engine("`", SPARK_SQL, catalog=(naming.CATALOG,))
INCOMPLETE = "rows that lack values until they are applied"


def saved_queries(table: Table, database: str, engine: Engine = ATHENA) -> dict[str, str]:
    """Return SELECTs by what each shows; a `?` is a parameter."""
    return {
        **_state_queries(table, database, engine),
        **_changelog_queries(table, database, engine),
        **_incomplete_query(table, database, engine),
        **_metadata_queries(table.name, database, engine),
    }


def _state_queries(table: Table, database: str, engine: Engine) -> dict[str, str]:
    state, is_live = engine.table(database, table.name), f"NOT {naming.DELETED}"
    return {
        "live rows": f"SELECT * FROM {state}\nWHERE {is_live}",
        "number of live rows": f"SELECT count(*) AS live FROM {state}\nWHERE {is_live}",
        "deleted rows": f"SELECT * FROM {state}\nWHERE {naming.DELETED}",
        "live rows as they were an hour ago": (
            f"SELECT * FROM {state} FOR TIMESTAMP AS OF (current_timestamp - interval '1' hour)\n"
            f"WHERE {is_live}"
        ),
    }


def _changelog_queries(table: Table, database: str, engine: Engine) -> dict[str, str]:
    log, quarantine = (engine.table(database, name) for name in (table.changes, naming.QUARANTINE))
    keys = shown_keys(table, engine.dialect)
    of_key = " AND ".join(f"{value} = ?" for value in keys.values())
    of_key = f"({of_key})" if len(keys) > 1 else of_key
    # Truncates have no key. By their operation engines could skip hardly any file.
    has_none = f"{next(iter(keys))} IS NULL"
    return {
        "audit trail of one key": (
            f"SELECT * FROM {log}\nWHERE {of_key} OR {has_none}\nORDER BY {naming.POSITION}"
        ),
        "changes of the last hour": (
            f"SELECT {_OPERATION_NAME} AS operation, *\nFROM {log}\n"
            f"WHERE {naming.INGESTED_AT} > current_timestamp - interval '1' hour\n"
            f"ORDER BY {naming.POSITION}"
        ),
        "the changelog, each event once": (
            "SELECT * FROM (\n"
            f"  SELECT *, {copy_number(table, engine.dialect)} AS cdc_repeat\n"
            f"  FROM {log})\nWHERE cdc_repeat = 1"
        ),
        "quarantined events": (
            f"SELECT {_REASON} AS reason, count(*) AS events, max(quarantined_at) AS newest\n"
            f"FROM {quarantine}\nWHERE {engine.name('table')} = '{table.name}'\nGROUP BY 1"
        ),
    }


def _incomplete_query(table: Table, database: str, engine: Engine) -> dict[str, str]:
    """Return the SELECT of rows whose values Athena's `<t>_current` lacks, if it may lack any."""
    if not table.may_stay_unsent:
        return {}
    changes, state = engine.table(database, table.changes), engine.table(database, table.name)
    select = incomplete_rows(table, changes=changes, state=state, dialect=engine.dialect)
    return {INCOMPLETE: select}


def put_queries(name: str, key: Sequence[str], database: str) -> dict[str, str]:
    """Return SELECTs over a table of put records by what each shows; `key` may be empty."""
    table = ATHENA.table(database, name)
    listed = ", ".join(ATHENA.name(column) for column in key)
    once = {
        "each key once, as it arrived last": (
            "-- A redriven record arrives again, also after a newer record of its key: to be sure,"
            " order by a column\n-- with the record's own time or version.\n"
            "SELECT * FROM (\n"
            f"  SELECT *, row_number() OVER (PARTITION BY {listed}"
            f" ORDER BY {ARRIVED_AT} DESC) AS cdc_repeat\n"
            f"  FROM {table})\nWHERE cdc_repeat = 1"
        ),
    }
    return {
        "newest rows": f"SELECT * FROM {table}\nORDER BY {ARRIVED_AT} DESC\nLIMIT 100",
        "rows of each day of arrival": (
            f"SELECT CAST({ARRIVED_AT} AS date) AS day, count(*) AS rows_of_day\nFROM {table}\n"
            "GROUP BY 1\nORDER BY 1 DESC"
        ),
        **(once if key else {}),
        **_metadata_queries(name, database, ATHENA),
    }


def request_queries(name: str, database: str) -> dict[str, str]:
    """Return SELECTs over a table of a web server's requests, by what each shows."""
    table = ATHENA.table(database, name)
    path = f"split_part({REQUEST}, ' ', 2)"
    return {
        "requests of each hour and status": (
            f"SELECT date_trunc('hour', {TIME_LOCAL}) AS hour, {STATUS}, count(*) AS requests,\n"
            f"  sum({BODY_BYTES_SENT}) AS bytes\nFROM {table}\n"
            f"WHERE {TIME_LOCAL} > current_timestamp - interval '1' day\n"
            "GROUP BY 1, 2\nORDER BY 1 DESC, 2"
        ),
        "most requested paths": (
            f"SELECT {path} AS path, count(*) AS requests, count_if({STATUS} >= 400) AS errors\n"
            f"FROM {table}\nWHERE {TIME_LOCAL} > current_timestamp - interval '1' day\n"
            "GROUP BY 1\nORDER BY 2 DESC\nLIMIT 100"
        ),
        "clients with the most errors": (
            f"SELECT {REMOTE_ADDR}, {STATUS}, count(*) AS requests\nFROM {table}\n"
            f"WHERE {STATUS} >= 400 AND {TIME_LOCAL} > current_timestamp - interval '1' day\n"
            "GROUP BY 1, 2\nORDER BY 3 DESC\nLIMIT 100"
        ),
        **put_queries(name, (), database),
    }


def _metadata_queries(name: str, database: str, engine: Engine) -> dict[str, str]:
    files, snapshots = (engine.metadata_of(database, name, of) for of in ("files", "snapshots"))
    return {
        "files": (
            "SELECT content, count(*) AS files, sum(file_size_in_bytes) AS bytes,\n"
            f"  count_if(file_size_in_bytes < {_SMALL_FILE_BYTES}) AS small\nFROM {files}\nGROUP"
            " BY content"
        ),
        "snapshots": (
            "SELECT committed_at, snapshot_id, operation, summary\n"
            f"FROM {snapshots}\nORDER BY committed_at DESC"
        ),
    }


def as_one_text(queries: dict[str, str]) -> str:
    """Return all queries as one text; Athena runs the selected part."""
    return "\n\n".join(f"-- {what}\n{query};" for what, query in queries.items()) + "\n"
