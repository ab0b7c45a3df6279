"""Replica identity of partitions that are created after the table has been published.

PostgreSQL gives a new partition the identity DEFAULT, whatever its root has. Without a primary key
its first UPDATE would fail, because we publish the root. In the embedded database an event trigger
gives it the identity of the root. cdclake leaves none in a user's database: there a table whose new
partitions DEFAULT would not identify is refused, and one with FULL is a warning.
"""

from __future__ import annotations

from dataclasses import replace

from cdclake.naming import SOURCE_SCHEMA
from cdclake.plan import Table
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.identity import identifies, identity_columns
from cdclake.postgres.quoting import identifier, qualified
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.statement import Statement

_FUNCTION = qualified(SOURCE_SCHEMA, "follow_identity")
_TRIGGER = identifier("cdclake_follow_identity")

_BODY = """
DECLARE leaf record;
BEGIN
  FOR leaf IN
    SELECT DISTINCT l.oid::regclass AS name, i.relname AS index
    FROM pg_event_trigger_ddl_commands() d
    JOIN pg_class r ON d.classid = 'pg_class'::regclass AND r.oid = pg_partition_root(d.objid)
    CROSS JOIN LATERAL pg_partition_tree(r.oid) t
    JOIN pg_class l ON l.oid = t.relid AND l.relkind = 'r' AND l.relreplident <> r.relreplident
    LEFT JOIN pg_index ri ON ri.indrelid = r.oid AND ri.indisreplident
    LEFT JOIN pg_index li
      ON li.indrelid = l.oid AND pg_partition_root(li.indexrelid) = ri.indexrelid
    LEFT JOIN pg_class i ON i.oid = li.indexrelid
    WHERE (r.relreplident = 'f' OR r.relreplident = 'i' AND i.oid IS NOT NULL)
      AND EXISTS (SELECT FROM pg_publication_rel pr JOIN pg_publication p ON p.oid = pr.prpubid
                  WHERE pr.prrelid = r.oid AND p.pubname ~ '^cdclake_')
  LOOP
    EXECUTE format('ALTER TABLE %s REPLICA IDENTITY %s', leaf.name,
                   coalesce('USING INDEX ' || quote_ident(leaf.index), 'FULL'));
  END LOOP;
END
"""


def check_new_partitions(declared: Table, actual: SourceTable) -> list[Refusal]:
    """Refuse a partitioned table whose new partitions no trigger follows and DEFAULT fails."""
    if actual.kind != "p":
        return []
    root = replace(actual, identity="d")
    key = frozenset(column.source for column in declared.key_columns)
    if identifies(root, key):
        return []
    logged = identity_columns(root)
    if logged:
        columns = ", ".join(sorted(logged))
        return [
            Refusal(
                actual.source,
                f"events of new partitions would lack the key ({', '.join(sorted(key))}):"
                f" PostgreSQL gives each the replica identity DEFAULT, which logs only ({columns})",
                f"under {actual.source} write `key: [{columns}]`, or add the key's columns to the"
                " primary key",
            )
        ]
    name = qualified(actual.schema, actual.table)
    return [
        Refusal(
            actual.source,
            "once published, every UPDATE and DELETE of a new partition would fail: PostgreSQL"
            " gives it the replica identity DEFAULT, and the table has no primary key",
            f"give it a primary key, with the columns that it is partitioned by: ALTER TABLE {name}"
            " ADD PRIMARY KEY (...);",
        )
    ]


def unfollowed_full(actual: SourceTable) -> Refusal:
    """Warn of a partitioned table with the identity FULL, which new partitions do not have.

    Nothing in their events shows it: a delete has NULL, 0 or an empty text in place of the row's
    last values, and an update lacks large values that it did not change.
    """
    return Refusal(
        actual.source,
        "PostgreSQL gives each new partition the replica identity DEFAULT: deletes of its rows do"
        " not have their last values, and updates lack large values that they did not change",
        "run `ALTER TABLE <partition> REPLICA IDENTITY FULL;` in the transaction that creates a"
        f" partition; or write `replica_identity: default` under {actual.source}",
    )


def follow_identity() -> list[Statement]:
    """Return the statements that replace the event trigger, which only runs on DDL."""
    return [
        Statement(
            "the function for new partitions",
            f"CREATE OR REPLACE FUNCTION {_FUNCTION}() RETURNS event_trigger LANGUAGE plpgsql"
            f" SET search_path = pg_catalog AS $body${_BODY}$body$",
        ),
        Statement("the trigger for new partitions", f"DROP EVENT TRIGGER IF EXISTS {_TRIGGER}"),
        Statement(
            "the trigger for new partitions",
            f"CREATE EVENT TRIGGER {_TRIGGER} ON ddl_command_end"
            " WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE')"
            f" EXECUTE FUNCTION {_FUNCTION}()",
        ),
    ]


def unfollow_identity() -> Statement:
    """Return the statement that drops the function and its trigger, if they exist."""
    return Statement(
        "the function for new partitions", f"DROP FUNCTION IF EXISTS {_FUNCTION}() CASCADE"
    )
