"""What a source must hold before it can stream: schema, role, grants and publication, as SQL.

The local lake and AWS run the same statements. Each may be run again, and none takes a lock that
a writer waits for: publishing locks a table in SHARE UPDATE EXCLUSIVE, which conflicts with VACUUM
and DDL, not with INSERT, UPDATE or DELETE. GRANT locks catalog rows only, which a TRUNCATE writes,
too: the later of the two would fail. So the tables are kept from a TRUNCATE, which waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cdclake.naming import HEARTBEAT_TABLE, SIGNAL_TABLE, SOURCE_SCHEMA
from cdclake.plan import Plan, Table
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.published import published_columns
from cdclake.postgres.quoting import identifier, identifiers, literal, qualified
from cdclake.postgres.statement import Statement

HEARTBEAT = qualified(SOURCE_SCHEMA, HEARTBEAT_TABLE)
SIGNAL = qualified(SOURCE_SCHEMA, SIGNAL_TABLE)
OWN_TABLES: tuple[TableId, ...] = (
    (SOURCE_SCHEMA, HEARTBEAT_TABLE),
    (SOURCE_SCHEMA, SIGNAL_TABLE),
)

# A row of its own, so that the connector's heartbeat never overwrites a marker.
MARKER_QUERY = (
    f"INSERT INTO {HEARTBEAT} (id, beat_at, marker) VALUES (2, now(), %s)"
    " ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, marker = excluded.marker"
)

_PUBLICATION_OPTIONS = (
    "publish_via_partition_root = true, publish = 'insert, update, delete, truncate'"
)

ColumnList = tuple[str, ...] | None  # None: all


@dataclass(frozen=True, slots=True)
class PublicationState:
    """The pipeline's publication as it is; `right`: it publishes all that it should."""

    exists: bool = False
    all_tables: bool = False
    right: bool = False
    tables: Mapping[TableId, ColumnList] | None = None  # None: not readable as such (row filter)

    def lacks(self, table: Table) -> bool:
        """Whether it is there and does not publish the table; `DROP COLUMN ... CASCADE` does so."""
        listed = self.exists and not self.all_tables and self.tables is not None
        return listed and (table.schema, table.table) not in (self.tables or {})


def prepare(
    plan: Plan,
    tables: Mapping[TableId, SourceTable],
    *,
    database: str,
    password_verifier: str,
    publication: PublicationState,
    granted: Collection[TableId] = (),
    replication_grant: str | None = None,
) -> list[Statement]:
    """Every statement, in order; meant for one transaction.

    `database` is the one connected to. `password_verifier` comes from `scram.scram_verifier`.
    `granted` are the relations on which the role holds anything by now: what is no longer declared
    is taken back.
    """
    lists = column_lists(plan, tables)
    return [
        *_own_schema(),
        *_role(plan.source_object, password_verifier, replication_grant),
        _without_truncates(lists),
        *_grants(plan, database, lists, granted),
        *_publication(plan.source_object, lists, publication),
    ]


def column_lists(plan: Plan, tables: Mapping[TableId, SourceTable]) -> dict[TableId, ColumnList]:
    """Every table to be published, our own included, and its columns where they are listed."""
    lists: dict[TableId, ColumnList] = {
        (table.schema, table.table): published_columns(table, tables[table.schema, table.table])
        for table in plan.tables
    }
    return lists | dict.fromkeys(OWN_TABLES)


def _own_schema() -> list[Statement]:
    return [
        Statement("our schema", f"CREATE SCHEMA IF NOT EXISTS {identifier(SOURCE_SCHEMA)}"),
        Statement(
            "heartbeats and markers",
            f"CREATE TABLE IF NOT EXISTS {HEARTBEAT}"
            " (id int PRIMARY KEY, beat_at timestamptz NOT NULL, marker text)",
        ),
        Statement(
            "signals to Debezium",  # it wants these three columns, in this order
            f"CREATE TABLE IF NOT EXISTS {SIGNAL}"
            " (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data text)",
        ),
    ]


def _role(role: str, verifier: str, replication_grant: str | None) -> list[Statement]:
    name, quoted = identifier(role), literal(role)
    create = (
        f"DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {quoted}) THEN"
        f" CREATE ROLE {name}; END IF; END $do$"
    )
    # Only what is missing is set: whoever may not give REPLICATION may not set it again either.
    replication = (
        f"DO $do$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = {quoted}"
        f" AND NOT rolreplication) THEN ALTER ROLE {name} REPLICATION; END IF; END $do$"
    )
    if replication_grant is not None:
        replication = f"GRANT {identifier(replication_grant)} TO {name}"
    login = f"ALTER ROLE {name} LOGIN PASSWORD {literal(verifier)}"
    return [
        Statement("our role", create),
        Statement("its right to stream", replication),
        Statement("its password, as a SCRAM verifier", login),
    ]


def _without_truncates(lists: Collection[TableId]) -> Statement:
    """Without waiting, so that no lock of ours is held while a truncating writer has another."""
    tables = ", ".join(f"ONLY {qualified(*table)}" for table in sorted({*lists} - set(OWN_TABLES)))
    return Statement("rights on its tables", f"LOCK TABLE {tables} IN ACCESS SHARE MODE NOWAIT")


def _grants(
    plan: Plan,
    database: str,
    lists: Mapping[TableId, ColumnList],
    granted: Collection[TableId],
) -> list[Statement]:
    """What the role may: read the declared columns, write our own tables, nothing else."""
    role = identifier(plan.source_object)
    # A bulk load reads a table in ranges of blocks: a right of its own where columns are listed.
    place = ("ctid",) if plan.snapshot_mode == "bulk" else ()
    schemas = sorted({schema for schema, _ in lists})
    revoked = sorted({*granted, *lists} - set(OWN_TABLES))
    statements = [
        Statement("connecting", f"GRANT CONNECT ON DATABASE {identifier(database)} TO {role}"),
        Statement(
            "our own tables",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {HEARTBEAT}, {SIGNAL} TO {role}",
        ),
        *(
            Statement(f"names in {schema}", f"GRANT USAGE ON SCHEMA {identifier(schema)} TO {role}")
            for schema in schemas
        ),
    ]
    for table in revoked:  # also before a grant: of the whole table, columns may be left
        shown = ".".join(table)
        statements.append(
            Statement(f"nothing on {shown}", f"REVOKE ALL ON {qualified(*table)} FROM {role}")
        )
        if table in lists:
            columns = lists[table]
            part = "" if columns is None else f" ({identifiers((*columns, *place))})"
            statements.append(
                Statement(
                    f"reading {shown}", f"GRANT SELECT{part} ON {qualified(*table)} TO {role}"
                )
            )
    return statements


def _publication(
    publication: str, lists: Mapping[TableId, ColumnList], current: PublicationState
) -> list[Statement]:
    name = identifier(publication)
    tables = ", ".join(
        qualified(*table) + ("" if columns is None else f" ({identifiers(columns)})")
        for table, columns in sorted(lists.items())
    )
    create = Statement(
        "the publication", f"CREATE PUBLICATION {name} FOR TABLE {tables}"
        f" WITH ({_PUBLICATION_OPTIONS})"
    )  # fmt: skip
    if not current.exists:
        return [create]
    if current.all_tables:  # such a one cannot be narrowed
        return [Statement("the publication of all tables", f"DROP PUBLICATION {name}"), create]
    statements = []
    if not current.right:
        statements.append(
            Statement("what it publishes", f"ALTER PUBLICATION {name} SET ({_PUBLICATION_OPTIONS})")
        )
    if current.tables is None or _as_sets(current.tables) != _as_sets(lists):
        statements.append(
            Statement("the tables it publishes", f"ALTER PUBLICATION {name} SET TABLE {tables}")
        )
    return statements


def _as_sets(lists: Mapping[TableId, ColumnList]) -> dict[TableId, frozenset[str] | None]:
    return {table: None if names is None else frozenset(names) for table, names in lists.items()}
