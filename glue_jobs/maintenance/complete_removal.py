"""Removal of deleted rows from everything that a table's newest snapshot reaches.

A delete leaves values behind: rows behind position deletes, entries of removed files in manifests
with their bounds, older snapshots and their tags. The caller holds the table's lease.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import each
from cdclake.jobs.maintenance.delete_compaction import compact_deletes

_MAIN = "main"  # Iceberg's name of the branch that readers read
_REWRITTEN = {"delete-file-threshold": "1", "remove-dangling-deletes": "true"}


def rewrite_without_deleted(lake: LakeTables, name: str) -> None:
    """Rewrite the data files with deleted rows, then all manifests without removed files."""
    if lake.load(name).currentSnapshot() is None:
        return
    if _delete_files(lake, name):
        options = ", ".join(f"{SPARK.text(k)}, {SPARK.text(v)}" for k, v in _REWRITTEN.items())
        lake.spark.sql(
            f"CALL {naming.CATALOG}.system.rewrite_data_files("
            f"table => {SPARK.text(f'{lake.database}.{name}')}, options => map({options}))"
        )
    if _delete_files(lake, name):  # of data files that are gone
        compact_deletes(lake, name, 0)
    rewrite = lake.load(name).rewriteManifests()
    rewrite.clusterBy(_OneGroup()).commit()


def metadata_file(lake: LakeTables, name: str) -> str:
    """Return the location of the table's current metadata file."""
    return str(lake.load(name).operations().current().metadataFileLocation())


def keep_current_snapshot(lake: LakeTables, name: str, *, keeps_files: bool) -> None:
    """Expire all snapshots but the current one, with the tags that keep them.

    With `keeps_files` no file is removed: a query that has planned some goes on reading them.
    """
    table = lake.load(name)
    if table.currentSnapshot() is None:
        return
    references = table.manageSnapshots()
    for entry in list(each(table.refs().entrySet())):
        if entry.getValue().isTag():
            references = references.removeTag(entry.getKey())
        elif entry.getKey() != _MAIN:
            references = references.removeBranch(entry.getKey())
    references.commit()
    after_all = datetime.now(UTC) + timedelta(days=1)
    expiry = lake.load(name).expireSnapshots().expireOlderThan(int(after_all.timestamp() * 1000))
    expiry.retainLast(1).cleanExpiredFiles(not keeps_files).commit()


def _delete_files(lake: LakeTables, name: str) -> int:
    summary = lake.load(name).currentSnapshot().summary()
    return int(summary.get("total-delete-files") or 0)


class _OneGroup:
    """java.util.function.Function that puts all files of a manifest's kind into one group.

    Iceberg's procedure leaves a single manifest as it is, with its entries of removed files.
    """

    def apply(self, _file: Any) -> str:
        return ""

    class Java:
        implements = ("java.util.function.Function",)
