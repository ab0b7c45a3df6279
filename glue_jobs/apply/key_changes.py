"""Unchanged TOAST values of rows whose key changed.

An UPDATE of a key arrives as a delete of the old key and a creation of the new one. An unchanged
TOAST value is in neither event; it belongs to an earlier event of the old key. Firehose delivers no
headers, so the pair is found in the changelog by equal (epoch, LSN, transaction). The previous
commit is not part of the match: a connector that restarts in between may report a different one.

A row's key may change any number of times while the value stays unsent. Its key changes are linked
by their positions alone, in as many joins as their number has binary digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.plan import Table

_PAIR = (naming.EPOCH, naming.LSN, naming.TX_ID)

# A link: a creation, and the time that its row had the old key, from its birth under that key (NULL
# if it was inserted under it, with all its values) to the key change.
_CREATED_AT, _LEFT_AT, _BORN_AT = "cdc__created_at", "cdc__left_at", "cdc__born_at"
_ROOT = "cdc__root"  # the same for all links of one row
_TARGET, _NEXT = "cdc__target", "cdc__next"


@contextmanager
def with_origins(pending: DataFrame, log: DataFrame, table: Table) -> Iterator[DataFrame]:
    """Complete creations of changed keys in `pending` with the values of the old keys.

    `log` is the whole changelog, including the pending changes. A value that no event of it holds
    stays unavailable. Queries the changelog, so call this only for batches with such a creation.
    Caches its intermediate results inside the block.
    """
    with ExitStack() as held:
        creations = held.enter_context(persisted(pending.where(is_carried_creation(pending))))
        highest = creations.agg(F.max(naming.LSN)).collect()[0][0]
        if highest is None:
            yield pending
            return
        events = log.where(F.col(naming.LSN) <= highest)
        links = held.enter_context(persisted(_links(events, table)))
        spans = _spans(creations, links, _roots(links, held))
        origins = _origins(held.enter_context(persisted(spans)), events, table)
        filled = held.enter_context(persisted(_filled(creations, origins, table)))
        yield pending.where(~is_carried_creation(pending)).unionByName(filled)


def carried_creations(log: DataFrame, lowest_lsn: int) -> DataFrame:
    """Select creations that lack a value and may belong to events from this LSN on.

    In a chain of key changes all later creations wait for the value of the first: the row's lock
    keeps their LSNs in order.
    """
    return log.where(is_carried_creation(log) & (log[naming.LSN] >= lowest_lsn))


def is_carried_creation(changes: DataFrame) -> Expression:
    """Match creations of changed keys that lack a value."""
    return (changes[naming.OP] == "c") & changes[naming.UNAVAILABLE].isNotNull()


def _links(events: DataFrame, table: Table) -> DataFrame:
    """Return each key change that left a value unsent: creation, old key, and its time span."""
    keys = [F.col(SPARK.name(key)).alias(f"cdc__old_{i}") for i, key in enumerate(table.key)]
    position = F.col(naming.POSITION)
    births = events.where(is_carried_creation(events))
    created = births.select(*_PAIR, position.alias(_CREATED_AT))
    deletes = events.where(F.col(naming.OP) == "d").select(*_PAIR, position.alias("at"), *keys)
    newest = F.max(F.struct("at", *_old_names(table))).alias("left")
    left = created.join(deletes, list(_PAIR)).groupBy(_CREATED_AT).agg(newest)
    left = left.select(_CREATED_AT, "left.*", F.lit(None).cast("string").alias("birth"))
    born = births.select(
        F.lit(None).cast("string").alias(_CREATED_AT),
        position.alias("at"),
        *keys,
        position.alias("birth"),
    )
    # A window instead of a join: a key may have had any number of rows.
    until = (
        Window.partitionBy(*_old_names(table))
        .orderBy("at")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    known = left.unionByName(born).withColumn(_BORN_AT, F.max("birth").over(until))
    known = known.where(F.col(_CREATED_AT).isNotNull()).withColumnRenamed("at", _LEFT_AT)
    return known.drop("birth")


def _old_names(table: Table) -> list[str]:
    return [f"cdc__old_{index}" for index in range(len(table.key))]


def _roots(links: DataFrame, held: ExitStack) -> DataFrame:
    """Return the root of each link, the earliest creation that links lead back to.

    Each round replaces a pointer by the pointer at its target, until none moves.
    """
    at, to = F.col(_CREATED_AT), F.col(_ROOT)
    roots = links.select(at, F.coalesce(_BORN_AT, _CREATED_AT).alias(_ROOT))
    while True:
        targets = roots.select(at.alias(_TARGET), to.alias(_NEXT))
        moved = roots.join(targets, to == F.col(_TARGET), "left")
        moved = moved.select(
            at, F.coalesce(_NEXT, _ROOT).alias(_ROOT), (F.col(_NEXT) != to).alias("moved")
        )
        moved = held.enter_context(persisted(moved))
        roots = moved.select(_CREATED_AT, _ROOT)
        if moved.where("moved").isEmpty():
            return roots


def _spans(creations: DataFrame, links: DataFrame, roots: DataFrame) -> DataFrame:
    """Select the links with the same root as one of the creations."""
    mine = roots.join(creations, roots[_CREATED_AT] == creations[naming.POSITION], "left_semi")
    rooted = links.join(roots, _CREATED_AT)
    return rooted.join(mine.select(_ROOT).distinct(), _ROOT, "left_semi")


def _origins(spans: DataFrame, log: DataFrame, table: Table) -> DataFrame:
    """Find the newest earlier value of each column, by the position of the creation.

    Another row may have had the key before: values from before the row's birth do not count.
    """
    own = [log[key] == spans[old] for key, old in zip(table.key, _old_names(table), strict=True)]
    at = log[naming.POSITION]
    within = [at < spans[_LEFT_AT], at >= F.coalesce(spans[_BORN_AT], F.lit(""))]
    images = log.where(~F.col(naming.OP).isin("d", "t"))
    newest = [_newest_held(column).alias(f"cdc__own_{column}") for column in table.toastable]
    found = images.join(spans, [*own, *within]).groupBy(_CREATED_AT).agg(*newest)
    earlier = Window.partitionBy(_ROOT).orderBy(_CREATED_AT)
    carried = (
        F.max(f"cdc__own_{column}").over(earlier).getField("value").alias(f"cdc__from_{column}")
        for column in table.toastable
    )
    return spans.join(found, _CREATED_AT, "left").select(_CREATED_AT, *carried)


def _newest_held(column: str) -> Expression:
    """Select the column's newest value with its position, to distinguish a NULL that was sent."""
    available = F.col(naming.UNAVAILABLE).isNull() | ~F.array_contains(naming.UNAVAILABLE, column)
    value = F.struct(F.col(SPARK.name(column)).alias("held"))
    held = F.struct(F.col(naming.POSITION).alias("at"), value.alias("value"))
    return F.max_by(held, F.when(available, F.col(naming.POSITION)))


def _filled(creations: DataFrame, origins: DataFrame, table: Table) -> DataFrame:
    """Fill the found values into the creations and remove them from the unavailable ones."""
    joined = creations.join(origins, creations[naming.POSITION] == origins[_CREATED_AT], "left")
    values = {
        column: F.when(_lacks(column), F.col(f"cdc__from_{column}.held")).otherwise(
            F.col(SPARK.name(column))
        )
        for column in table.toastable
    }
    still = F.array_compact(
        F.array(
            *(
                F.when(_lacks(column) & F.col(f"cdc__from_{column}").isNull(), F.lit(column))
                for column in table.toastable
            )
        )
    )
    values[naming.UNAVAILABLE] = F.when(F.size(still) > 0, still)
    return joined.withColumns(values).select(*creations.columns)


def _lacks(column: str) -> Expression:
    return F.array_contains(naming.UNAVAILABLE, column)
