"""The deletes of many batches, brought together: for each data file one file of its own.

A batch writes one file of deletes for all data files, which is the least that it can write. A
reader has to open each of them with every data file, and Iceberg cannot tell how much of which file
is deleted. Its own `rewrite_position_delete_files` fails in 1.10 for a table that has an array or a
map (apache/iceberg issue 15080), and a state has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.iceberg.upsert import FILE, ROW
from cdclake.jobs.iceberg.delete_files import DeleteFiles
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.pruned_scan import PrunedScan
from cdclake.jobs.jvm.java import each, java_with

_CLASSES = ("org.apache.iceberg.FileContent", "org.apache.iceberg.ManifestFiles")


def compact_deletes(lake: LakeTables, name: str, at_least: int) -> None:
    """Replace the table's files of deletes, once a reader has to open so many for one data file.

    One commit, which removes no row and brings none back. Format version 3 never comes so far: it
    has one file of deletes for each data file from the beginning.
    """
    table = lake.load(name)
    current = table.currentSnapshot()
    if current is None:
        return
    java = java_with(lake.spark, *_CLASSES)
    snapshot_id = int(current.snapshotId())
    scan = PrunedScan(lake, name, table, snapshot_id)
    tasks = [task for task in scan.files_with(scan.between({})) if not task.deletes().isEmpty()]
    if max((task.deletes().size() for task in tasks), default=0) < at_least:
        return
    rewrite = table.newRewrite().validateFromSnapshot(snapshot_id)
    for file in _delete_files(java, table, current):
        rewrite.deleteFile(file)
    data_files = [task.file() for task in tasks]
    with scan.rows_of(tasks, "_deleted") as rows, persisted(_deleted(rows)) as places:
        for file in DeleteFiles(lake, table).write_by_data_file(places, data_files):
            rewrite.addFile(file)
    rewrite.commit()


def _delete_files(java: Any, table: Any, snapshot: Any) -> Iterator[Any]:
    """Every file of position deletes, those included that no data file is left for."""
    for manifest in each(snapshot.deleteManifests(table.io())):
        reader = java.ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs())
        for entry in each(reader):
            file = entry.copy()  # the reader fills the same object again and again
            if file.content() == java.FileContent.POSITION_DELETES:
                yield file
        reader.close()


def _deleted(rows: DataFrame) -> DataFrame:
    """The places of the rows that are deleted."""
    return rows.where("_deleted").select(F.col("_file").alias(FILE), F.col("_pos").alias(ROW))
