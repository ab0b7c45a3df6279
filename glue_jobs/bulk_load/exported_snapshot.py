"""Consistent view of the source at one LSN, shared by all reading tasks.

The connection that creates the replication slot exports the snapshot of the slot's consistent
point: everything committed before it is in the snapshot, everything else arrives through the slot.
The snapshot is valid while that connection stays open and idle, so it ends with the job.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from cdclake.errors import ComponentFailed
from cdclake.jobs.runtime.secrets import resolve_secret
from cdclake.plan import Table
from cdclake.postgres import bulk_read
from cdclake.postgres.mask_values import SALT_SETTING

_DRIVER = "org.postgresql.Driver"
_FETCHED = "1000"  # rows that a task holds at once, regardless of their width
_TRUST = ("sslrootcert", "sslfactory")  # optional settings of the driver
_VERSION = "SELECT current_setting('server_version_num')::bigint"
_REPLICATION = {
    "replication": "database",
    "preferQueryMode": "simple",
    "assumeMinServerVersion": "9.4",  # below it the driver sends no `replication`
}
_NEVER = "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0"


class JdbcSource:
    """JDBC access to the database; neither URL nor messages contain the password."""

    def __init__(self, spark: SparkSession, address: str, mask_salt: str) -> None:
        """Resolve the references to secrets in `address` (`SourceAddress` as JSON) and the salt.

        `mask_salt` is empty if no column has `mask: hash`.
        """
        given = json.loads(address)
        self.spark = spark
        host = f"[{given['host']}]" if ":" in given["host"] else given["host"]
        self.url = f"jdbc:postgresql://{host}:{given['port']}/{quote(given['database'], safe='')}"
        salt = resolve_secret(mask_salt) if mask_salt else ""
        salt = salt.replace("\\", "\\\\").replace(" ", "\\ ")
        self.properties = {
            "user": given["user"],
            "password": resolve_secret(given["password"]),
            "sslmode": given["sslmode"],
            **{name: given[name] for name in _TRUST if given.get(name)},
            "ApplicationName": "cdclake load",
            "tcpKeepAlive": "true",
            "options": f"{_NEVER} -c {SALT_SETTING}={salt}",
        }

    def connect(self, **more: str) -> Any:
        """Open a JDBC connection from the Spark driver."""
        jvm: Any = self.spark.sparkContext._jvm
        properties = jvm.java.util.Properties()
        for name, value in {**self.properties, **more}.items():
            properties.setProperty(name, value)
        return jvm.org.postgresql.Driver().connect(self.url, properties)


@dataclass(frozen=True, slots=True)
class ExportedSnapshot:
    """View of the source at `lsn`, the slot's consistent point; sessions import it as `name`."""

    source: JdbcSource
    name: str
    lsn: int
    read_at: int  # microseconds since 1970
    locks: Any  # the connection that keeps the tables from being rewritten

    def rows(self, table: Table) -> DataFrame:
        """Read the table's rows, one task per chunk; every evaluation gives the same rows."""
        return self._read(bulk_read.rows(table), bulk_read.chunks(self._blocks(table)))

    def count(self, table: Table) -> int:
        """Count the table's rows."""
        return int(self._read(bulk_read.count(table), ["true"]).collect()[0][0])

    def has_unique_keys(self, table: Table) -> bool:
        """Return whether a unique index in the source enforces unique keys."""
        return int(_first_value(self.locks, bulk_read.unique_indexes(table))) > 0

    def check(self) -> None:
        """Raise ComponentFailed if tables may have been rewritten since the snapshot was taken."""
        _first_value(self.locks, "SELECT 1")

    def _blocks(self, table: Table) -> int:
        return int(_first_value(self.locks, bulk_read.blocks(table)))

    def _read(self, query: str, predicates: list[str]) -> DataFrame:
        properties = {
            **self.source.properties,
            "driver": _DRIVER,
            "fetchsize": _FETCHED,  # makes Spark open a transaction, which the snapshot needs
            "sessionInitStatement": bulk_read.import_snapshot(self.name),
            "pushDownPredicate": "false",
        }
        relation = f"({query}) AS source_rows"
        return self.source.spark.read.jdbc(
            self.source.url, relation, predicates=predicates, properties=properties
        )


@contextmanager
def exported_snapshot(
    source: JdbcSource, slot: str, tables: Sequence[Table]
) -> Iterator[ExportedSnapshot]:
    """Create the slot and hold its snapshot inside the block.

    The locks come first: a table rewritten between snapshot and lock would look empty. Raises
    ComponentFailed if the database refuses, for instance because the slot exists.
    """
    locks = connected(source)
    try:
        locks.setAutoCommit(False)
        for table in tables:
            execute(locks, bulk_read.lock_against_rewrites(table))
        exporter = connected(source, **_REPLICATION)
        try:
            version = int(_first_value(locks, _VERSION))
            lsn, name = _create_slot(exporter, slot, version)
            yield ExportedSnapshot(source, name, lsn, time.time_ns() // 1000, locks)
        finally:
            exporter.close()
    finally:
        locks.close()


def connected(source: JdbcSource, **more: str) -> Any:
    """Open a connection; raise ComponentFailed with the database's reason if that fails."""
    try:
        return source.connect(**more)
    except Py4JJavaError as error:
        raise refusal(error) from None


def _create_slot(connection: Any, slot: str, version: int) -> tuple[int, str]:
    try:
        answer = connection.createStatement().executeQuery(bulk_read.create_slot(slot, version))
        answer.next()
        high, low = answer.getString("consistent_point").split("/")
        return (int(high, 16) << 32) + int(low, 16), answer.getString("snapshot_name")
    except Py4JJavaError as error:
        raise refusal(error) from None


def execute(connection: Any, statement: str) -> None:
    """Execute a statement; raise ComponentFailed if the database refuses it."""
    try:
        connection.createStatement().execute(statement)
    except Py4JJavaError as error:
        raise refusal(error) from None


def _first_value(connection: Any, query: str) -> Any:
    try:
        answer = connection.createStatement().executeQuery(query)
        answer.next()
        return answer.getLong(1)
    except Py4JJavaError as error:
        raise refusal(error) from None


def refusal(error: Py4JJavaError) -> ComponentFailed:
    """Return the error to raise when the database has refused a statement."""
    reason = str(error.java_exception.getMessage()).splitlines()[0]
    return ComponentFailed(
        f"the source refused the bulk load: {reason}",
        "fix the cause, then start the load again (locally `cdclake up`)",
        component="postgres",
    )
