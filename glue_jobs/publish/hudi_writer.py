"""Writes to a copy's Hudi table, each one commit that carries the copy's stamp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.errors import TableError
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.publish.copy_stamp import CopyStamp
from cdclake.jobs.publish.hudi_timeline import STAMP_KEY, HudiCommit, newest_stamped

Operation = Literal["bulk_insert", "upsert", "insert_overwrite_table"]
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_KEPT_HOURS = 5 * 24  # as long as the hourly snapshots of the lake's tables
# In `.hoodie/`, where incremental queries find them: an hourly copy's commits of five days.
_KEPT_COMMITS = (120, 144)
_COMPACT_EVERY_N_COMMITS = 5
_KEEP = {
    "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
    "hoodie.clean.hours.retained": str(_KEPT_HOURS),
    "hoodie.keep.min.commits": str(_KEPT_COMMITS[0]),
    "hoodie.keep.max.commits": str(_KEPT_COMMITS[1]),
}
_FORMAT = {
    # Athena reads tables of Hudi 0.14, whose version is 6; Hudi 1 would write version 8.
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",  # it would listen on a port
    "hoodie.datasource.write.commitmeta.key.prefix": STAMP_KEY,
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
# A global index finds the row of a key in any partition, and so moves it instead of doubling it.
_INDEX = {
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "true",
}
# The newest position of a key wins; that of the stored row again, too, so a repeat is harmless.
_ORDER = {
    "hoodie.datasource.write.precombine.field": naming.POSITION,
    "hoodie.datasource.write.payload.class": (
        "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    ),
}
_DELETE = {"hoodie.payload.delete.field": naming.OP, "hoodie.payload.delete.marker": "d"}
_COMPACT = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": str(_COMPACT_EVERY_N_COMMITS),
}


@dataclass(frozen=True, slots=True)
class HudiWriter:
    """Hudi table of a copy in its folder."""

    copy: HudiCopy
    record_key: str
    folder: str
    storage: ObjectStorage
    keeps_deleted: bool  # rows of deleted keys stay, marked by `cdc_deleted`

    def newest(self) -> HudiCommit | None:
        """Return the newest commit of this job; None before the first."""
        return newest_stamped(self.storage, self.folder)

    def write(self, rows: DataFrame, operation: Operation, stamp: CopyStamp) -> None:
        """Write the rows in one commit; raise TableError if Hudi did not write each of them."""
        options = self._options(operation, stamp, rows.sparkSession.sparkContext.defaultParallelism)
        rows.write.format("hudi").options(**options).mode("append").save(self.folder)
        commit = self.newest()
        # Hudi logs rows that it cannot write, and may commit the others.
        if commit is None or commit.stamp != stamp or commit.failed:
            raise TableError(
                self.copy.name,
                "Hudi could not write all rows",
                "the job's log has Hudi's reason for each row; the copy is then written as a whole",
            )

    def _options(self, operation: Operation, stamp: CopyStamp, tasks: int) -> Mapping[str, str]:
        compacts = self.copy.type == "mor"
        return {
            "hoodie.table.name": self.copy.name,
            STAMP_KEY: stamp.to_json(),
            "hoodie.datasource.write.table.type": _TYPES[self.copy.type],
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": self.record_key,
            **self._partitioning(),
            **_FORMAT,
            **_KEEP,
            **_INDEX,
            **_ORDER,
            **({} if self.keeps_deleted else _DELETE),
            **(_COMPACT if compacts else {}),
            "hoodie.global.simple.index.parallelism": str(tasks),
            "hoodie.bulkinsert.shuffle.parallelism": str(tasks),
            "hoodie.upsert.shuffle.parallelism": str(tasks),
        }

    def _partitioning(self) -> Mapping[str, str]:
        if self.copy.partition_by is None:
            generator = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            return {"hoodie.datasource.write.keygenerator.class": generator}
        return {
            "hoodie.datasource.write.partitionpath.field": self.copy.partition_by,
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
        }
