"""Application of a changelog that Firehose writes; rows arrive in any order and more than once.

Progress is tracked by the changelog's commits, not by time of ingestion. Rows that were applied
before may be read again; this is harmless, since the merge keeps the greater position.
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
    """Apply rows committed since the state's stamp; return the number of rows read.

    `epoch` is the newest that the pipeline has seen, so that a table is swept even if the new
    snapshot has no row of it. Retries if its commit conflicts with another writer's.
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
    """Add creations of changed keys, applied earlier without a value that `late` may contain.

    Such a value comes from an older event of the row, below the creation's LSN.
    """
    if not set(applied.carried) & {*table.may_be_unsent}:
        return late
    lowest = late.agg(F.min(naming.LSN)).collect()[0][0]
    return late if lowest is None else late.unionByName(carried_creations(earlier, lowest))


def _not_before(applied: AppliedThrough, until: AppliedThrough) -> AppliedThrough:
    """Keep the time of ingestion from going back: a commit may contain only older rows."""
    return replace(until, ingested=max(applied.ingested, until.ingested))
