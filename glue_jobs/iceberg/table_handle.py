"""One Iceberg table held between commits, so that a commit needs no load from the catalog.

Iceberg's Table object knows the snapshot of its own last commit. Another writer's commits are seen
when it commits, which refreshes it, and when it has not been used for some minutes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cdclake import naming
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.lake_tables import LakeTables, StampedSnapshot, stamped_snapshot
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.table_files import file_target
from cdclake.jobs.jvm.java import java_with

MAX_AGE_S = 600.0  # much less than snapshots are kept
_CLASSES = (
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
        self._known_at = time.monotonic()

    def _loaded(self) -> Any:
        """Return Iceberg's Table object, refreshed if it may be out of date."""
        if time.monotonic() - self._known_at >= MAX_AGE_S or self._known_at == 0.0:
            self._table = self._lake.load(self.name)
            self._known_at = time.monotonic()
        return self._table
