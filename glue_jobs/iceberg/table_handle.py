"""One Iceberg table held between commits, so that a commit needs no load from the catalog.

Iceberg's Table object knows the snapshot of its own last commit. Another writer's commits are seen
when it commits, which refreshes it, and when it has not been used for some minutes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cdclake import naming
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.lake_tables import LakeTables, StampedSnapshot, stamped_snapshot
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.table_files import file_target
from cdclake.jobs.jvm.java import each, java_with

_DAY_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
MAX_AGE_S = 600.0  # much less than snapshots are kept
_CLASSES = (
    "java.util.Arrays",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.iceberg.ContentFileParser",
    "org.apache.iceberg.SchemaParser",
    "org.apache.iceberg.expressions.Expressions",
    "org.apache.iceberg.util.JsonUtil",
)


class TableHandle:
    """Table of the lake that this process appends to."""

    def __init__(self, lake: LakeTables, name: str) -> None:
        self._lake, self.name = lake, name
        self._java = java_with(lake.spark, *_CLASSES)
        self._table: Any = None
        self._known_at = 0.0
        self._target: tuple[int, FileTarget] | None = None  # by the schema's id

    def stamped(self) -> StampedSnapshot:
        """Return the table's current snapshot and its newest stamp."""
        return stamped_snapshot(self._loaded())

    def target(self) -> FileTarget:
        """Return the target of files for the table's current schema."""
        table = self._loaded()
        schema = table.schema()
        if self._target is None or self._target[0] != schema.schemaId():
            text = self._java.SchemaParser.toJson(schema)
            made = file_target(
                self.name, table, text, ObjectStorage.of(dict(table.io().properties()))
            )
            self._target = schema.schemaId(), made
        return self._target[1]

    @property
    def expressions(self) -> Any:
        """Iceberg's class of expressions."""
        return self._java.Expressions

    def ingested(self, *, after: int, through: int | None = None) -> Any:
        """Return Iceberg's expression for rows ingested in this range (microseconds since 1970)."""
        # As text: py4j passes small numbers as integers, which Iceberg does not compare with times.
        java = self._java.Expressions
        later = java.greaterThan(naming.INGESTED_AT, _iso(after))
        if through is None:
            return later
        return getattr(java, "and")(later, java.lessThanOrEqual(naming.INGESTED_AT, _iso(through)))

    def described(self, condition: Any) -> list[dict[str, Any]]:
        """Describe the current snapshot's files that may have rows of Iceberg's expression.

        Bounds are among the descriptions, and `has_deletes`: whether rows of the file are deleted.
        """
        table = self._loaded()
        if table.currentSnapshot() is None:
            return []
        found, specs = [], table.specs()
        planned = table.newScan().filter(condition).includeColumnStats().planFiles()
        for task in each(planned):
            file = task.file()
            text = self._java.ContentFileParser.toJson(file, specs.get(file.specId()))
            found.append({**json.loads(text), "has_deletes": not task.deletes().isEmpty()})
        planned.close()
        return found

    def may_have(self, condition: Any) -> bool:
        """Return whether a file of the current snapshot may have rows of Iceberg's expression."""
        table = self._loaded()
        if table.currentSnapshot() is None:
            return False
        planned = table.newScan().filter(condition).planFiles()
        found = bool(planned.iterator().hasNext())
        planned.close()
        return found

    def field_id(self, column: str) -> int:
        """Return the id of a column of the current schema."""
        return int(self._loaded().schema().findField(column).fieldId())

    def append(
        self,
        files: Sequence[str],
        *,
        read_from: int | None,
        unless_added: Any,
        stamp: str | None = None,
    ) -> None:
        """Commit described files, with a stamp, as one snapshot with the operation `append`.

        Iceberg refuses it if files that may have rows of the expression `unless_added` were added
        after the snapshot `read_from`. Iceberg's appends never conflict with each other, so this is
        an overwrite that deletes nothing.
        """
        table, java = self._loaded(), self._java
        spec, mapper = table.spec(), java.JsonUtil.mapper()
        commit = table.newOverwrite()
        for file in files:
            commit = commit.addFile(java.ContentFileParser.fromJson(mapper.readTree(file), spec))
        if read_from is not None:
            commit = commit.validateFromSnapshot(read_from)
        commit = commit.conflictDetectionFilter(unless_added).validateNoConflictingData()
        if stamp is not None:
            commit = commit.set(naming.STAMP_PROPERTY, stamp)
        self._known_at = 0.0  # should the commit fail, the table is loaded again
        commit.commit()
        self._mark_known()

    def forget(self) -> None:
        """Load the table again before its next use."""
        self._known_at = 0.0

    def _mark_known(self) -> None:
        """Note that Iceberg's object is as new as the last commit."""
        self._known_at = time.monotonic()

    def _loaded(self) -> Any:
        """Return Iceberg's Table object, refreshed if it may be out of date."""
        if time.monotonic() - self._known_at >= MAX_AGE_S or self._known_at == 0.0:
            self._table = self._lake.load(self.name)
            self._mark_known()
        return self._table


def _iso(micros: int) -> str:
    return (_DAY_ZERO + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
