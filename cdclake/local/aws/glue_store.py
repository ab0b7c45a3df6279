"""moto's Glue catalog, stored in SQLite, with Glue's optimistic locking.

moto's UpdateTable ignores VersionId and SkipArchive, so two concurrent Iceberg commits would both
succeed and one would be lost. Here, as on AWS, a stale VersionId is rejected with
ConcurrentModificationException, and Iceberg retries.

Unlike Glue: only databases and tables survive a restart (no partitions, jobs, crawlers, tags),
names keep their case, and SkipArchive drops older archived versions, too: those of derived tables,
which earlier releases kept, have values of erased rows.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.responses import EmptyResult
from moto.glue.models import FakeDatabase, FakeTable, glue_backends
from moto.glue.responses import GlueResponse

from cdclake.local.aws.index import Index


class GlueStore:
    """Storage of databases and tables; written after each change, under the server's lock.

    Read requests take the same lock, so that no client sees unwritten changes.
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def install(self) -> None:
        """Replace moto's UpdateTable and load the stored catalog."""
        GlueResponse.update_table = update_table  # type: ignore[method-assign]
        self._load()

    def commit(self, region: str, action: str, parameters: dict[str, Any]) -> None:
        """Store the current state of the objects that the action names."""
        with self.index.transaction():
            if action in ("CreateDatabase", "UpdateDatabase"):
                self._save_database(region, parameters["DatabaseInput"]["Name"])
            elif action == "DeleteDatabase":
                self._save_database(region, parameters["Name"])
            elif action in ("CreateTable", "UpdateTable"):
                name = parameters["TableInput"]["Name"]
                self._save_table(region, parameters["DatabaseName"], name)
            elif action == "DeleteTable":
                self._save_table(region, parameters["DatabaseName"], parameters["Name"])
            elif action == "BatchDeleteTable":
                for name in parameters["TablesToDelete"]:
                    self._save_table(region, parameters["DatabaseName"], name)
            elif action in ("DeleteTableVersion", "BatchDeleteTableVersion"):
                self._save_table(region, parameters["DatabaseName"], parameters["TableName"])

    def _save_database(self, region: str, name: str) -> None:
        db, database = self.index.connection, _databases(region).get(name)
        if database is None:
            db.execute("delete from glue_database where region = ? and name = ?", (region, name))
            db.execute("delete from glue_table where region = ? and database = ?", (region, name))
        else:
            row = (region, name, json.dumps(_fields(database, "input", "created_time")))
            db.execute("insert or replace into glue_database values (?, ?, ?)", row)

    def _save_table(self, region: str, database_name: str, name: str) -> None:
        db, database = self.index.connection, _databases(region).get(database_name)
        table = database.tables.get(name) if database is not None else None
        key = (region, database_name, name)
        if table is None:
            db.execute("delete from glue_table where region = ? and database = ? and name = ?", key)
        else:
            body = _fields(table, "versions", "_current_version", "created_time", "updated_time")
            db.execute(
                "insert or replace into glue_table values (?, ?, ?, ?)", (*key, json.dumps(body))
            )

    def _load(self) -> None:
        db = self.index.connection
        for region, name, body in db.execute("select * from glue_database"):
            database = FakeDatabase(name, {}, catalog_id=DEFAULT_ACCOUNT_ID)
            _restore(database, json.loads(body))
            _databases(region)[name] = database
        for region, database_name, name, body in db.execute("select * from glue_table"):
            table = FakeTable(database_name, name, {}, catalog_id=DEFAULT_ACCOUNT_ID)
            _restore(table, json.loads(body))
            _databases(region)[database_name].tables[name] = table


def update_table(self: Any) -> EmptyResult:
    """Update a table if its version matches, as AWS does; the server's lock makes it atomic."""
    table_input = self.parameters["TableInput"]
    expected = self.parameters.get("VersionId")
    table = self.glue_backend.get_table(self.parameters["DatabaseName"], table_input["Name"])
    current = str(table._current_version)
    if expected is not None and str(expected) != current:
        raise JsonRESTError(
            "ConcurrentModificationException",
            f"the table is at version {current}, the update is for version {expected}",
        )
    table.update(table_input)
    if self.parameters.get("SkipArchive"):
        table.versions = {str(table._current_version): table_input}
    return EmptyResult()


def _databases(region: str) -> dict[str, FakeDatabase]:
    return glue_backends[DEFAULT_ACCOUNT_ID][region].databases


def _fields(thing: Any, *names: str) -> dict[str, Any]:
    found = {name: getattr(thing, name) for name in names}
    return {
        name: value.isoformat() if isinstance(value, datetime.datetime) else value
        for name, value in found.items()
    }


def _restore(thing: Any, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        is_time = name.endswith("_time") and value is not None
        setattr(thing, name, datetime.datetime.fromisoformat(value) if is_time else value)
