"""What people ask of a table, as text that they choose from: no value of ours is in it.

The state is as far as changes are applied; the log is as far as they are streamed.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdclake import naming
from cdclake.plan import Table

# What makes an event the same event; its offset may differ when it was sent again.
_IDENTITY = (naming.EPOCH, naming.PHASE, naming.LSN, naming.OP)
_SMALL_FILE_BYTES = 16 * 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Engine:
    """How an engine names the lake's tables; what else is asked here all of them spell alike."""

    quote: str
    catalog: tuple[str, ...] = ()  # where tables have it before their database
    metadata: str = "."  # between a table and a table of its metadata

    def name(self, *parts: str) -> str:
        """The name of these parts, quoted."""
        return ".".join(f"{self.quote}{part}{self.quote}" for part in parts)

    def table(self, database: str, table: str) -> str:
        """The table's name as far as a session has to be told."""
        return self.name(*self.catalog, database, table)

    def metadata_of(self, database: str, table: str, what: str) -> str:
        """The name of a table of the table's metadata."""
        if self.metadata == ".":
            return self.name(*self.catalog, database, table, what)
        return self.table(database, f"{table}{self.metadata}{what}")


ATHENA = Engine('"', metadata="$")
SPARK = Engine("`", catalog=(naming.CATALOG,))


def saved_queries(table: Table, database: str, engine: Engine = ATHENA) -> dict[str, str]:
    """SELECTs by what each shows; a `?` is a value that is asked for."""
    state, log = engine.table(database, table.name), engine.table(database, table.changes)
    files, snapshots = (
        engine.metadata_of(database, table.name, of) for of in ("files", "snapshots")
    )
    of_key = " AND ".join(f"{engine.name(key)} = ?" for key in table.key)
    identity = ", ".join((*_IDENTITY, *(engine.name(key) for key in table.key)))
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
            f"  count_if(file_size_in_bytes < {_SMALL_FILE_BYTES}) AS small\nFROM {files}\nGROUP"
            " BY content"
        ),
        "snapshots": (
            "SELECT committed_at, snapshot_id, operation, summary\n"
            f"FROM {snapshots}\nORDER BY committed_at DESC"
        ),
    }


def as_one_text(queries: dict[str, str]) -> str:
    """All of them to choose from; Athena runs what is selected."""
    return "\n\n".join(f"-- {what}\n{query};" for what, query in queries.items()) + "\n"
