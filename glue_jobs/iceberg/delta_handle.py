"""One Iceberg table whose rows are replaced by row deltas, held between commits.

Knows the table's live files, so that a commit needs no scan: they change by its own commits, and
are planned again after another writer's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from cdclake import naming
from cdclake.jobs.iceberg.data_file import Delta, LiveFile, path_of
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.jvm.java import each

_ROW_DELTA_VERSION = 2  # format 3 has deletion vectors instead of delete files


@dataclass(slots=True)
class LiveFiles:
    """Files of one snapshot."""

    snapshot_id: int | None
    data_files: list[LiveFile] = field(default_factory=list)  # by ascending sequence number
    delete_files: list[str] = field(default_factory=list)


class DeltaHandle(TableHandle):
    """Table of the lake whose rows this process replaces."""

    def __init__(self, lake: LakeTables, name: str) -> None:
        super().__init__(lake, name)
        self._live: LiveFiles | None = None

    @property
    def takes_deltas(self) -> bool:
        """Return whether the table's format has position delete files."""
        version = self._loaded().operations().current().formatVersion()
        return bool(version == _ROW_DELTA_VERSION)

    def live(self) -> LiveFiles:
        """Return the current snapshot's files."""
        table = self._loaded()
        current = table.currentSnapshot()
        snapshot_id = None if current is None else int(current.snapshotId())
        if self._live is None or self._live.snapshot_id != snapshot_id:
            self._live = self._planned(table, snapshot_id)
        return self._live

    def commit_delta(self, delta: Delta, *, read_from: int | None, stamp: str) -> None:
        """Commit the files with the stamp; refused if another writer has committed meanwhile.

        `read_from` is the snapshot whose files were searched (None: the table was empty). It is
        given, since this handle may have been loaded again after the search.
        """
        table, java = self._loaded(), self._java
        known = self._live
        mapper, specs = java.JsonUtil.mapper(), table.specs()

        def parsed(text: str) -> Any:
            spec = specs.get(json.loads(text)["spec-id"])
            return java.ContentFileParser.fromJson(mapper.readTree(text), spec)

        commit = table.newRowDelta()
        for file in delta.data_files:
            commit = commit.addRows(parsed(file))
        for file in delta.delete_files:
            commit = commit.addDeletes(parsed(file))
        if delta.replaced_in:
            paths = java.Arrays.asList(java.PythonUtils.toArray(list(delta.replaced_in)))
            commit = commit.validateDataFilesExist(paths)
        commit = commit.conflictDetectionFilter(java.Expressions.alwaysTrue())
        if read_from is not None:
            commit = commit.validateFromSnapshot(read_from)
        commit = commit.validateDeletedFiles().validateNoConflictingDataFiles()
        commit = commit.validateNoConflictingDeleteFiles().set(naming.STAMP_PROPERTY, stamp)
        self.forget()  # should the commit fail, the table is loaded again
        commit.commit()
        self._mark_known()
        if known is not None and known.snapshot_id == read_from:
            self._keep(table, delta, known)

    def forget(self) -> None:
        """Load the table and plan its files again before their next use."""
        super().forget()
        self._live = None

    def _keep(self, table: Any, delta: Delta, before: LiveFiles) -> None:
        """Note the files of the own commit, unless another commit came before it."""
        current = table.currentSnapshot()
        parent = current.parentId()
        if (None if parent is None else int(parent)) != before.snapshot_id:
            return
        sequence = int(current.sequenceNumber())
        added = [_live_file(json.loads(text), sequence) for text in delta.data_files]
        self._live = LiveFiles(
            int(current.snapshotId()),
            [*before.data_files, *added],
            [*before.delete_files, *map(path_of, delta.delete_files)],
        )

    def _planned(self, table: Any, snapshot_id: int | None) -> LiveFiles:
        live = LiveFiles(snapshot_id)
        if snapshot_id is None:
            return live
        planned, specs, deletes = table.newScan().planFiles(), table.specs(), set()
        for task in each(planned):
            file = task.file()
            described = json.loads(
                self._java.ContentFileParser.toJson(file, specs.get(file.specId()))
            )
            live.data_files.append(_live_file(described, int(file.dataSequenceNumber())))
            deletes |= {str(delete.location()) for delete in each(task.deletes())}
        planned.close()
        live.data_files.sort(key=lambda each: (each.sequence, each.path))
        live.delete_files += sorted(deletes)
        return live


def _live_file(described: dict[str, Any], sequence: int) -> LiveFile:
    partition = described.get("partition", {})
    return LiveFile(described["file-path"], sequence, described["spec-id"], partition)
