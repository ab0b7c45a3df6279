"""Applying a log that Firehose writes, where rows come in any order, and more than once.

What is applied is told by the log's commits, not by moments of ingestion. A row that was applied
before may be read again with those that were not; the merge keeps the greater position.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import epoch_start, history_part
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.change_stats import stats_of
from cdclake.jobs.apply.changelog_commits import Commits, commits_since, reached
from cdclake.jobs.apply.key_changes import carried_creations
from cdclake.jobs.apply.state_table import applied_through, merge_pending
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.plan import Table


def apply_log(lake: LakeTables, table: Table, *, epoch: int) -> int:
    """Merge what has been committed to the log since the state's stamp; how many rows were read.

    `epoch` is the newest that the pipeline has seen: with it a table is swept of which the new
    snapshot brings no row. Begins again if its commit loses against another writer's.
    """
    return retry_on_conflict(table.name, lambda: _apply_log(lake, table, epoch))


def _apply_log(lake: LakeTables, table: Table, epoch: int) -> int:
    applied = applied_through(lake, table)
    commits = commits_since(lake, table, applied.sequence)
    if commits is None:
        if not applied.sequence or history_part(str(epoch_start(epoch))) <= applied.floor:
            return 0
        commits = Commits(applied.sequence, applied.ingested)
    log = lake.read(table.changes)
    is_late = f"{naming.INGESTED_AT} > {SPARK.instant(commits.after)}"
    late, earlier = log.where(is_late), log.where(f"NOT ({is_late})")
    with persisted(_with_creations(late, earlier, table, applied)) as pending:
        facts = stats_of(table, pending)
        until = _not_before(applied, reached(pending, commits.sequence, epoch))
        merge_pending(lake, table, pending, facts, applied, until)
        return facts.events


def _with_creations(
    late: DataFrame, earlier: DataFrame, table: Table, applied: AppliedThrough
) -> DataFrame:
    """With the creations of changed keys that were applied without a value which these may bring.

    Such a value is from an older event of the row, and below the creation's LSN.
    """
    if not set(applied.carried) & {*table.may_be_unsent}:
        return late
    lowest = late.agg(F.min(naming.LSN)).collect()[0][0]
    return late if lowest is None else late.unionByName(carried_creations(earlier, lowest))


def _not_before(applied: AppliedThrough, until: AppliedThrough) -> AppliedThrough:
    """A commit may bring nothing but rows from before."""
    return replace(until, ingested=max(applied.ingested, until.ingested))
