"""A table of many files, as one has that is appended to all day long."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlparse

from cdclake.jobs.iceberg.lake_tables import LakeTables

FILLER_OFFSET = -7  # of the rows in these files: not one of the batches'
_FILES_A_COMMIT = 100


def lengthen(lake: LakeTables, table: str, files: int) -> None:
    """Give the table, which has one file in a folder, that many: each the same one once more.

    A file is a hard link and its commit has no rows to write, so that ten thousand take seconds;
    the manifests are what that many appends leave behind.
    """
    loaded = lake.load(table)
    file = loaded.currentSnapshot().addedDataFiles(loaded.io()).iterator().next()
    first = Path(urlparse(str(file.location())).path)
    builders = lake.spark.sparkContext._jvm.org.apache.iceberg.DataFiles  # type: ignore[union-attr]
    for start in range(0, files, _FILES_A_COMMIT):
        commit = loaded.newAppend()
        for number in range(start, min(start + _FILES_A_COMMIT, files)):
            link = first.with_name(f"filler-{number:06}.parquet")
            os.link(first, link)
            builder = builders.builder(loaded.spec()).copy(file).withPath(str(link))
            commit.appendFile(builder.build())
        commit.commit()
