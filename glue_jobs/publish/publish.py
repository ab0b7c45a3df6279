"""Publication of a copy: its Hudi table follows the state, its catalog entries follow both."""

from __future__ import annotations

import logging
from dataclasses import replace

from cdclake import naming
from cdclake.errors import TableError
from cdclake.fail_points import reach
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.control.requests import last_erasure
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.publish.copied_rows import StateSnapshot
from cdclake.jobs.publish.copy_stamp import record_key, stamp_of
from cdclake.jobs.publish.hudi_entries import HudiEntries
from cdclake.jobs.publish.hudi_timeline import copy_folder, partition_folders
from cdclake.jobs.publish.hudi_writer import HudiWriter
from cdclake.jobs.table_jobs.table_job import TableJob

log = logging.getLogger("cdclake.job")


def publish(job: TableJob, copy: HudiCopy) -> int:
    """Update the copy in one commit; return the number of rows written or deleted.

    The commit notes how far the copy has come, so a run that is killed is done again, with the same
    result. The catalog is compared in every run, since the last one may have died before it.
    """
    with job.leases.hold(copy.name):
        erasure = last_erasure(job.control, copy.table)  # before the state, which it has left
        source = StateSnapshot.open(job.lake, job.plan.table(copy.table))
        if source is None:
            return 0
        writer = _writer(job, copy, source)
        written = _write(writer, source, erasure)
        reach("after_hudi_commit")
        if writer.newest() is not None:
            folders = partition_folders(writer.storage, writer.folder) if copy.partition_by else []
            HudiEntries(job.lake.database, copy).put(writer.folder, source.whole().schema, folders)
        return written


def _writer(job: TableJob, copy: HudiCopy, source: StateSnapshot) -> HudiWriter:
    lake, table = job.lake, source.table
    warehouse = lake.spark.conf.get(f"spark.sql.catalog.{naming.CATALOG}.warehouse")
    return HudiWriter(
        copy,
        record_key(table),
        copy_folder(str(warehouse), lake.database, copy.name),
        ObjectStorage.of(dict(lake.load(table.name).io().properties())),
        keeps_deleted=table.deletes == "soft",
    )


def _write(writer: HudiWriter, source: StateSnapshot, erasure: str) -> int:
    copy = writer.copy
    types = dict(source.state.dtypes)
    stamp = stamp_of(copy, source.table, source.applied, erasure, types)
    known = writer.newest()
    if known is None:
        with persisted(source.whole()) as rows:
            # Without a row Hudi would know no columns: the first publication waits for one.
            count = rows.count()
            if count:
                writer.write(rows, "bulk_insert", stamp)
            return count
    stored = known.stamp.of_table(source.table)
    if stored == stamp and not known.failed:
        return 0
    if stored.layout != stamp.layout:
        raise TableError(
            copy.name,
            f"the copy is {stored.layout}; the pipeline file has {stamp.layout}",
            "give the copy another `name:`; the old one can then be dropped",
        )
    before = replace(stored, through=stamp.through, floor=stamp.floor)
    is_whole = known.failed or before != stamp
    changed = None if is_whole else source.since(stored)
    if changed is not None:
        with persisted(changed) as rows:
            writer.write(rows, "upsert", stamp)
            return rows.count()
    log.info("%s: written as a whole", copy.name, extra={"table": copy.name})
    with persisted(source.whole()) as rows:
        writer.write(rows, "insert_overwrite_table", stamp)
        return rows.count()
