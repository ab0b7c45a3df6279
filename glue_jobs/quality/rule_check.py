"""Check of one table's quality rules over `<t>_current`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import RulesFailed
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Table
from cdclake.quality_rule import FailedRule, QualityRule

log = logging.getLogger("cdclake.quality")

_EXAMPLES = 5
_ROWS = "cdc__rows"


def check_table(job: TableJob, table: Table) -> int:
    """Check the table's rules, those of rows in one pass; return 0, no row is changed.

    Raises:
        RulesFailed: if a rule does not hold: with the number of rows and the keys of some
    """
    if not table.checks:
        return 0
    for name in {table.name, *(rule.table for rule in table.checks if rule.table)}:
        open_source(job.lake, job.plan.table(name))
    rows = job.lake.spark.table(naming.current_name(table.name))
    failed = [*_of_rows(table, rows), *_of_references(table, rows), *_of_freshness(job, table)]
    for rule in failed:
        log.warning("table %s: %s", table.name, rule, extra={"table": table.name})
    if failed:
        raise RulesFailed(table.name, failed)
    return 0


def _of_rows(table: Table, rows: DataFrame) -> Iterator[FailedRule]:
    """Yield the failed rules of rows and of their number."""
    rules = [rule for rule in table.checks if rule.kind == "rows"]
    limits = [rule for rule in table.checks if rule.kind == "row_count"]
    if not rules and not limits:
        return
    counts = [F.expr(f"count_if({rule.violated})").alias(f"r{n}") for n, rule in enumerate(rules)]
    found = rows.agg(F.count(F.lit(1)).alias(_ROWS), *counts).collect()[0]
    for number, rule in enumerate(rules):
        if broken := found[f"r{number}"]:
            yield FailedRule(rule.name, broken, _keys(table, rows.where(rule.violated)))
    for rule in limits:
        if not _is_within(rule, found[_ROWS]):
            yield FailedRule(f"{rule.name}: {found[_ROWS]} rows, expected {_limits(rule)}")


def _of_references(table: Table, rows: DataFrame) -> Iterator[FailedRule]:
    for rule in table.checks:
        if rule.kind != "references":
            continue
        other = rows.sparkSession.table(naming.current_name(rule.table))
        known = other.select(F.col(rule.key).alias(rule.column)).distinct()
        lacking = rows.where(f"{SPARK.name(rule.column)} IS NOT NULL").join(
            known, [rule.column], "left_anti"
        )
        if broken := lacking.count():
            yield FailedRule(rule.name, broken, _keys(table, lacking))


def _of_freshness(job: TableJob, table: Table) -> Iterator[FailedRule]:
    for rule in table.checks:
        if rule.kind != "freshness":
            continue
        assert rule.most is not None
        changes = job.lake.read(table.changes)
        newest = changes.agg(F.expr(f"unix_micros(max({naming.COMMITTED_AT}))")).collect()[0][0]
        age = None if newest is None else datetime.now(UTC).timestamp() - newest / 1_000_000
        if age is None or age > rule.most:
            shown = "none" if age is None else f"{age:.0f} s ago"
            yield FailedRule(f"freshness: newest change {shown}, expected within {rule.most:.0f} s")


def _keys(table: Table, broken: DataFrame) -> list[dict[str, str]]:
    found = broken.select(*table.key).orderBy(*table.key).limit(_EXAMPLES).collect()
    return [{name: str(value) for name, value in row.asDict().items()} for row in found]


def _is_within(rule: QualityRule, count: int) -> bool:
    return (rule.least is None or count >= rule.least) and (rule.most is None or count <= rule.most)


def _limits(rule: QualityRule) -> str:
    least = "" if rule.least is None else f"at least {rule.least:.0f}"
    most = "" if rule.most is None else f"at most {rule.most:.0f}"
    return " and ".join(filter(None, (least, most)))
