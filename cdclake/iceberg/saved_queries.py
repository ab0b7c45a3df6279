"""What people ask of a table in Athena, as text that they choose from: no value of ours is in it.

The state is as far as changes are applied; the log is as far as they are streamed.
"""

from __future__ import annotations

from cdclake import naming
from cdclake.plan import Table

# What makes an event the same event; its offset may differ when it was sent again.
_IDENTITY = (naming.EPOCH, naming.PHASE, naming.LSN, naming.OP)
_SMALL = 16 * 1024 * 1024  # bytes


def saved_queries(table: Table, database: str) -> dict[str, str]:
    """SELECTs in Athena's dialect by what each shows; a `?` is a value that is asked for."""
    state, log = _name(database, table.name), _name(database, table.changes)
    files, snapshots = (_name(database, f"{table.name}${of}") for of in ("files", "snapshots"))
    of_key = " AND ".join(f"{_name(key)} = ?" for key in table.key)
    identity = ", ".join((*_IDENTITY, *(_name(key) for key in table.key)))
    return {
        "live rows": f"SELECT * FROM {state}\nWHERE NOT {naming.DELETED}",
        "live rows as they were an hour ago": (
            f"SELECT * FROM {state} FOR TIMESTAMP AS OF (current_timestamp - interval '1' hour)\n"
            f"WHERE NOT {naming.DELETED}"
        ),
        "audit trail of one key": (
            f"SELECT * FROM {log}\nWHERE {of_key}\nORDER BY {naming.POSITION}"
        ),
        "the log, each event once": (
            "SELECT * FROM (\n"
            f"  SELECT *, row_number() OVER (PARTITION BY {identity}"
            f" ORDER BY {naming.OFFSET}) AS repeat\n"
            f"  FROM {log})\nWHERE repeat = 1"
        ),
        "files": (
            "SELECT content, count(*) AS files, sum(file_size_in_bytes) AS bytes,\n"
            f"  count_if(file_size_in_bytes < {_SMALL}) AS small\nFROM {files}\nGROUP BY content"
        ),
        "snapshots": (
            "SELECT committed_at, snapshot_id, operation, summary\n"
            f"FROM {snapshots}\nORDER BY committed_at DESC"
        ),
    }


def as_one_text(queries: dict[str, str]) -> str:
    """All of them to choose from; Athena runs what is selected."""
    return "\n\n".join(f"-- {what}\n{query};" for what, query in queries.items()) + "\n"


def _name(*parts: str) -> str:
    return ".".join(f'"{part}"' for part in parts)
