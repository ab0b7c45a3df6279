"""Compaction of position deletes: the deletes of many batches become one file per data file.

A batch writes one delete file for all data files, which is the least that it can write. A reader
has to open each of them with every data file, and Iceberg does not know how many rows of a data
file are deleted. Iceberg's `rewrite_position_delete_files` fails in 1.10 for a table with an array
or a map (apache/iceberg issue 15080), and a state has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.jobs.iceberg.delete_files import DeleteFiles
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.planned_scan import FILE, ROW, PlannedScan
from cdclake.jobs.jvm.java import each, java_with

_CLASSES = ("org.apache.iceberg.FileContent", "org.apache.iceberg.ManifestFiles")


def compact_deletes(lake: LakeTables, name: str, at_least: int) -> None:
    """Replace the table's delete files once some data file has `at_least` of them.

    It is one commit, which neither removes nor restores a row. Tables of format version 3 never
    need it: they have one deletion vector per data file from the start.
    """
    table = lake.load(name)
    current = table.currentSnapshot()
    if current is None:
        return
    java = java_with(lake.spark, *_CLASSES)
    snapshot_id = int(current.snapshotId())
    scan = PlannedScan(lake, name, table, snapshot_id)
    tasks = [task for task in scan.files() if not task.deletes().isEmpty()]
    if max((task.deletes().size() for task in tasks), default=0) < at_least:
        return
    rewrite = table.newRewrite().validateFromSnapshot(snapshot_id)
    for file in _delete_files(java, table, current):
        rewrite.deleteFile(file)
    if tasks:
        data_files = [task.file() for task in tasks]
        with scan.rows_of(tasks, "_deleted") as rows, persisted(_deleted(rows)) as places:
            for file in DeleteFiles(lake, table).write_by_data_file(places, data_files):
                rewrite.addFile(file)
    rewrite.commit()


def drop_dangling_deletes(lake: LakeTables, name: str) -> None:
    """Remove the deletes of rows whose data files are gone, once they could outnumber the rows.

    Iceberg keeps them as long as an older data file exists. DuckDB 1.5.5 subtracts them from the
    rows, and fails in a union or a join over a table that would have less than none.
    """
    snapshot = lake.load(name).currentSnapshot()
    if snapshot is None:
        return
    totals = snapshot.summary()
    rows, deleted = (int(totals.get(f"total-{of}") or 0) for of in ("records", "position-deletes"))
    # Compaction leaves a data file few deleted rows: so many are not of files that exist.
    if deleted * 2 > rows:
        compact_deletes(lake, name, 0)


def _delete_files(java: Any, table: Any, snapshot: Any) -> Iterator[Any]:
    """Yield all position delete files, including those whose data files are gone."""
    for manifest in each(snapshot.deleteManifests(table.io())):
        reader = java.ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs())
        for entry in each(reader):
            file = entry.copy()  # the reader reuses one object
            if file.content() == java.FileContent.POSITION_DELETES:
                yield file
        reader.close()


def _deleted(rows: DataFrame) -> DataFrame:
    """Return the places of the deleted rows."""
    return rows.where("_deleted").select(F.col("_file").alias(FILE), F.col("_pos").alias(ROW))
