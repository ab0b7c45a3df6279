"""The source as it was at one LSN, for as many readers as there are tasks.

The replication slot is created by a connection that exports the snapshot of its consistent point:
what was committed before it is in the snapshot, everything else comes by the slot. The snapshot
lives as long as that connection does nothing else, so it dies with the job.
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
from cdclake.postgres.event_values import SALT_SETTING

_DRIVER = "org.postgresql.Driver"
_FETCHED = "1000"  # rows that a task holds at once, however wide they are
_REPLICATION = {
    "replication": "database",
    "preferQueryMode": "simple",
    "assumeMinServerVersion": "9.4",  # below it the driver sends no `replication`
}
_NEVER = "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0"


class JdbcSource:
    """How the job connects to the database; the password is in no address and no message."""

    def __init__(self, spark: SparkSession, address: str, mask_salt: str) -> None:
        """`address` is a `SourceAddress` as JSON; its password and `mask_salt` are references."""
        given = json.loads(address)
        self.spark = spark
        host = f"[{given['host']}]" if ":" in given["host"] else given["host"]
        self.url = f"jdbc:postgresql://{host}:{given['port']}/{quote(given['database'], safe='')}"
        salt = resolve_secret(mask_salt).replace("\\", "\\\\").replace(" ", "\\ ")
        self.properties = {
            "user": given["user"],
            "password": resolve_secret(given["password"]),
            "sslmode": given["sslmode"],
            "ApplicationName": "cdclake load",
            "tcpKeepAlive": "true",
            "options": f"{_NEVER} -c {SALT_SETTING}={salt}",
        }

    def connect(self, **more: str) -> Any:
        """A JDBC connection, of the driver."""
        jvm: Any = self.spark.sparkContext._jvm
        properties = jvm.java.util.Properties()
        for name, value in {**self.properties, **more}.items():
            properties.setProperty(name, value)
        return jvm.org.postgresql.Driver().connect(self.url, properties)


@dataclass(frozen=True, slots=True)
class ExportedSnapshot:
    """The source at `lsn`, the slot's consistent point; whoever imports `name` sees it."""

    source: JdbcSource
    name: str
    lsn: int
    read_at: int  # microseconds since 1970
    locks: Any  # the connection that keeps the tables from being rewritten

    def rows(self, table: Table) -> DataFrame:
        """The table's rows, a task for each chunk; each time the same ones."""
        return self._read(bulk_read.rows(table), bulk_read.chunks(self._blocks(table)))

    def count(self, table: Table) -> int:
        """How many rows the table has."""
        return int(self._read(bulk_read.count(table), ["true"]).collect()[0][0])

    def has_unique_keys(self, table: Table) -> bool:
        """Whether the source itself sees to it that no key stands twice."""
        return int(_first_value(self.locks, bulk_read.unique_indexes(table))) > 0

    def check(self) -> None:
        """ComponentFailed if the tables may have been rewritten since the snapshot was taken."""
        _first_value(self.locks, "SELECT 1")

    def _blocks(self, table: Table) -> int:
        return int(_first_value(self.locks, bulk_read.blocks(table)))

    def _read(self, query: str, predicates: list[str]) -> DataFrame:
        properties = {
            **self.source.properties,
            "driver": _DRIVER,
            "fetchsize": _FETCHED,  # and with it a transaction, which the snapshot needs
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

    The locks come first: a table that was rewritten between snapshot and lock would seem empty.
    ComponentFailed if the database refuses; a slot of that name must not be there.
    """
    locks = _connected(source)
    try:
        locks.setAutoCommit(False)
        for table in tables:
            _execute(locks, bulk_read.lock_against_rewrites(table))
        exporter = _connected(source, **_REPLICATION)
        try:
            lsn, name = _create_slot(exporter, slot)
            yield ExportedSnapshot(source, name, lsn, time.time_ns() // 1000, locks)
        finally:
            exporter.close()
    finally:
        locks.close()


def _connected(source: JdbcSource, **more: str) -> Any:
    try:
        return source.connect(**more)
    except Py4JJavaError as error:
        raise _refused(error) from None


def _create_slot(connection: Any, slot: str) -> tuple[int, str]:
    try:
        answer = connection.createStatement().executeQuery(bulk_read.create_slot(slot))
        answer.next()
        high, low = answer.getString("consistent_point").split("/")
        return (int(high, 16) << 32) + int(low, 16), answer.getString("snapshot_name")
    except Py4JJavaError as error:
        raise _refused(error) from None


def _execute(connection: Any, statement: str) -> None:
    try:
        connection.createStatement().execute(statement)
    except Py4JJavaError as error:
        raise _refused(error) from None


def _first_value(connection: Any, query: str) -> Any:
    try:
        answer = connection.createStatement().executeQuery(query)
        answer.next()
        return answer.getLong(1)
    except Py4JJavaError as error:
        raise _refused(error) from None


def _refused(error: Py4JJavaError) -> ComponentFailed:
    reason = str(error.java_exception.getMessage()).splitlines()[0]
    return ComponentFailed(
        f"the source refused the bulk load: {reason}",
        "mend what it names, then run `cdclake up` again",
        component="postgres",
    )
