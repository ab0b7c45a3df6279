"""SQL that prepares a source for streaming: schema, role, grants and publication.

The local lake and AWS run the same statements. Each is idempotent, and none takes a lock that
blocks a writer: publishing locks a table in SHARE UPDATE EXCLUSIVE, which conflicts with VACUUM and
DDL, not with INSERT, UPDATE or DELETE. GRANT locks only catalog rows, but TRUNCATE writes them too,
and the later of the two would fail. So the tables are locked against TRUNCATE, which waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cdclake.naming import HEARTBEAT_TABLE, SIGNAL_TABLE, SOURCE_SCHEMA
from cdclake.plan import Plan, Table
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.ownership import mark_statement
from cdclake.postgres.published import polled_columns, published_columns
from cdclake.postgres.query_schemas import set_search_path
from cdclake.postgres.quoting import identifier, identifiers, literal, qualified
from cdclake.postgres.statement import Statement

HEARTBEAT = qualified(SOURCE_SCHEMA, HEARTBEAT_TABLE)
SIGNAL = qualified(SOURCE_SCHEMA, SIGNAL_TABLE)
OWN_TABLES: tuple[TableId, ...] = (
    (SOURCE_SCHEMA, HEARTBEAT_TABLE),
    (SOURCE_SCHEMA, SIGNAL_TABLE),
)

# A separate row, so that the connector's heartbeat never overwrites a marker.
MARKER_QUERY = (
    f"INSERT INTO {HEARTBEAT} (id, beat_at, marker) VALUES (2, now(), %s)"
    " ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, marker = excluded.marker"
)

_PUBLICATION_OPTIONS = (
    "publish_via_partition_root = true, publish = 'insert, update, delete, truncate'"
)

# The connector's first snapshot is one transaction, and waits in it while its queue is full.
_TIME_LIMITS = (
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",  # since PostgreSQL 17
)

ColumnList = tuple[str, ...] | None  # None: all
KINDS_OF_TABLES = "rp"  # of relations in the catalog that have system columns
# They need a grant if there is a column list. A bulk load reads a table by ranges of blocks; the
# check for attached partitions looks at the first rows of new ones.
SYSTEM_COLUMNS = ("ctid", "tableoid", "xmin", "cmin")


@dataclass(frozen=True, slots=True)
class PublicationState:
    """Actual publication of the pipeline; `right`: its options are those that it should have."""

    exists: bool = False
    all_tables: bool = False
    right: bool = False
    tables: Mapping[TableId, ColumnList] = field(default_factory=dict)
    filtered: frozenset[TableId] = frozenset()  # tables with a row filter

    def omission(self, table: Table) -> str | None:
        """Return why changes of the table do not reach the lake; None if all of them do."""
        name = (table.schema, table.table)
        if not self.exists or not (self.all_tables or name in self.tables):
            return "it is not in the publication: its changes do not reach the lake"
        if name in self.filtered:
            return "the publication filters its rows: changes of other rows do not reach the lake"
        if not self.right:
            return (
                "the publication's options `publish` or `publish_via_partition_root` were changed:"
                " some of its changes, such as deletes, do not reach the lake"
            )
        return None

    def lacks(self, table: Table) -> bool:
        """Check whether it exists and omits changes, as after `DROP COLUMN ... CASCADE`."""
        return self.exists and self.omission(table) is not None


def prepare(
    plan: Plan,
    tables: Mapping[TableId, SourceTable],
    *,
    database: str,
    password_verifier: str,
    mark: str,
    publication: PublicationState,
    granted: Collection[TableId] = (),
    replication_grant: str | None = None,
    query_schemas: Sequence[str] | None = None,
) -> list[Statement]:
    """Return all statements in order, to be run in one transaction.

    `database`: the connected database.
    `password_verifier`: from `scram.scram_verifier`.
    `mark`: of the role's owner.
    `granted`: relations on which the role has privileges; undeclared ones are revoked.
    `query_schemas`: from `read_query_schemas`.
    """
    lists = column_lists(plan, tables)
    return [
        *_own_schema(),
        *_role(plan.source_object, password_verifier, replication_grant),
        Statement("the mark of its owner", mark_statement(plan.source_object, mark)),
        *_without_truncates(lists),
        *_grants(plan, database, lists | polled_lists(plan, tables), granted, query_schemas or ()),
        *_sight_of_transactions(plan),
        *(
            []
            if query_schemas is None
            else [set_search_path(plan.source_object, database, query_schemas)]
        ),
        *_publication(plan.source_object, lists, publication),
    ]


def column_lists(plan: Plan, tables: Mapping[TableId, SourceTable]) -> dict[TableId, ColumnList]:
    """Return every table to be published, including our own, and its column list if it has one."""
    lists: dict[TableId, ColumnList] = {
        (table.schema, table.table): published_columns(table, tables[table.schema, table.table])
        for table in plan.tables
    }
    return lists | dict.fromkeys(OWN_TABLES)


def polled_lists(plan: Plan, tables: Mapping[TableId, SourceTable]) -> dict[TableId, ColumnList]:
    """Return every relation that polls read, and the columns that they may read: all of a query's.

    Views have no system columns.
    """
    lists: dict[TableId, ColumnList] = {}
    for table in plan.polled:
        if table.is_query:
            continue
        name = (table.schema, table.table)
        is_table = tables[name].kind in KINDS_OF_TABLES
        lists[name] = polled_columns(table, tables[name]) if is_table else None
    queries = (table.poll for table in plan.polled if table.is_query)
    return lists | dict.fromkeys(relation for poll in queries for relation in poll.reads)


def _sight_of_transactions(plan: Plan) -> list[Statement]:
    """Let the role see when transactions began, on which polls without an overlap depend."""
    if all(table.poll.overlap_minutes is not None for table in plan.polled):
        return []
    role, quoted = identifier(plan.source_object), literal(plan.source_object)
    grant = (
        f"DO $do$ BEGIN IF NOT pg_has_role({quoted}, 'pg_read_all_stats', 'USAGE') THEN"
        f" GRANT pg_read_all_stats TO {role}; END IF; END $do$"
    )
    return [Statement("its sight of other sessions' transactions, for polls", grant)]


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
    # Only missing attributes are set: who may not grant REPLICATION may not set it again.
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
        _without_time_limits(role),
    ]


def _without_time_limits(role: str) -> Statement:
    """Lift the time limits of server and database for the role, as far as the server has them.

    They are settings of the role since an unknown one in a connection's options refuses the login.
    """
    names = ", ".join(literal(name) for name in _TIME_LIMITS)
    alter = literal(f"ALTER ROLE {identifier(role)} SET ")
    lift = (
        "DO $do$ DECLARE setting text; BEGIN"
        f" FOR setting IN SELECT name FROM pg_settings WHERE name IN ({names}) LOOP"
        f" EXECUTE {alter} || setting || ' = 0'; END LOOP; END $do$"
    )
    return Statement("no time limits for its sessions", lift)


def _without_truncates(lists: Collection[TableId]) -> list[Statement]:
    """Lock the tables against TRUNCATE without waiting, to avoid a deadlock with a truncate."""
    tables = ", ".join(f"ONLY {qualified(*table)}" for table in sorted({*lists} - set(OWN_TABLES)))
    lock = Statement("rights on its tables", f"LOCK TABLE {tables} IN ACCESS SHARE MODE NOWAIT")
    return [lock] if tables else []


def _grants(
    plan: Plan,
    database: str,
    lists: Mapping[TableId, ColumnList],
    granted: Collection[TableId],
    query_schemas: Collection[str],
) -> list[Statement]:
    """Grant the role exactly: read the declared columns, write our own tables."""
    role = identifier(plan.source_object)
    schemas = sorted({*query_schemas, *(schema for schema, _ in lists)})
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
    for table in revoked:  # also before a grant: column privileges may remain from earlier
        shown = ".".join(table)
        statements.append(
            Statement(f"nothing on {shown}", f"REVOKE ALL ON {qualified(*table)} FROM {role}")
        )
        if table in lists:
            columns = lists[table]
            part = "" if columns is None else f" ({identifiers((*columns, *SYSTEM_COLUMNS))})"
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
    if current.all_tables:  # cannot be narrowed
        return [Statement("the publication of all tables", f"DROP PUBLICATION {name}"), create]
    statements = []
    if not current.right:
        statements.append(
            Statement("what it publishes", f"ALTER PUBLICATION {name} SET ({_PUBLICATION_OPTIONS})")
        )
    if current.filtered or _as_sets(current.tables) != _as_sets(lists):
        statements.append(
            Statement("the tables it publishes", f"ALTER PUBLICATION {name} SET TABLE {tables}")
        )
    return statements


def _as_sets(lists: Mapping[TableId, ColumnList]) -> dict[TableId, frozenset[str] | None]:
    return {table: None if names is None else frozenset(names) for table, names in lists.items()}
