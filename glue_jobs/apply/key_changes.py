"""Unchanged TOAST values of rows whose key changed.

An UPDATE of a key arrives as a delete of the old key and a creation of the new one. An unchanged
TOAST value is in neither event; it belongs to an earlier event of the old key. Firehose delivers no
headers, so the pair is found in the changelog by equal (epoch, LSN, transaction). The previous
commit is not part of the match: a connector that restarts in between may report a different one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.events_of_keys import compared_keys
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.plan import Table

_PAIR = (naming.EPOCH, naming.LSN, naming.TX_ID)
_MAX_STEPS_BACK = 8  # Spark's plan grows with each; longer chains are resolved by doubling

# A span: the time that a row had an earlier key, from its birth under that key to the key change.
_CREATED_AT, _LEFT_AT, _BORN_AT = "cdc__created_at", "cdc__left_at", "cdc__born_at"
_PLACE = "cdc__place"  # position and key: rows of two partitions may have the same position
_WAL_ORDER = "cdc__wal_order"  # of the key change; a row's earlier key changes are below it


@contextmanager
def with_origins(pending: DataFrame, log: DataFrame, table: Table) -> Iterator[DataFrame]:
    """Complete creations of changed keys in `pending` with the values of the old keys.

    `log` is the whole changelog, including the pending changes. A value that no event of it holds
    stays unavailable. Queries the changelog, so call this only for batches with such a creation.
    Caches its intermediate results inside the block.
    """
    with ExitStack() as held:
        creations = held.enter_context(persisted(pending.where(is_carried_creation(pending))))
        spans, is_complete = _spans(creations, log, table, held)
        if not spans:
            yield pending
            return
        if is_complete:
            origins = _origins(reduce(DataFrame.unionByName, spans), log, table)
        else:
            origins = _chain_origins(creations, log, table, held)
        filled = held.enter_context(persisted(_filled(creations, origins, table)))
        yield pending.where(~is_carried_creation(pending)).unionByName(filled)


def carried_creations(log: DataFrame, lowest_lsn: int) -> DataFrame:
    """Select creations that lack a value and may belong to deletes from this LSN on.

    In a chain of key changes all later creations wait for the value of the first: the row's lock
    keeps their LSNs in order.
    """
    return log.where(is_carried_creation(log) & (log[naming.LSN] >= lowest_lsn))


def with_completed_creations(changes: DataFrame, log: DataFrame) -> DataFrame:
    """Add to `changes`, rows of the changelog `log`, the creations that they may have completed.

    An event of the old key that arrives late changes the row of the new key. Queries `changes`, so
    call this only if an event of the changelog may lack a value.
    """
    [[lowest]] = changes.agg(F.min(naming.LSN)).collect()
    return changes if lowest is None else changes.unionByName(carried_creations(log, lowest))


def is_carried_creation(changes: DataFrame) -> Expression:
    """Match creations of changed keys that lack a value."""
    return (changes[naming.OP] == "c") & changes[naming.UNAVAILABLE].isNotNull()


def _spans(
    creations: DataFrame, log: DataFrame, table: Table, held: ExitStack
) -> tuple[list[DataFrame], bool]:
    """Follow the creations' spans back; the flag is False if some row has more of them."""
    born = creations.select(F.col(naming.POSITION).alias(_CREATED_AT), *_PAIR)
    spans: list[DataFrame] = []
    while True:
        lowest, highest = born.agg(F.min(naming.LSN), F.max(naming.LSN)).collect()[0]
        if lowest is None or len(spans) == _MAX_STEPS_BACK:
            return spans, lowest is None
        events = log.where(F.col(naming.LSN) <= highest)
        step = _step_back(born, events, events.where(F.col(naming.LSN) >= lowest), table)
        spans.append(held.enter_context(persisted(step)))
        born = step.where(F.col(_BORN_AT).isNotNull()).select(_CREATED_AT, *_PAIR)


def _step_back(born: DataFrame, events: DataFrame, paired: DataFrame, table: Table) -> DataFrame:
    """Find the keys that rows had before these births, and the births under those keys.

    A birth is NULL if the row was inserted under that key, with all its values. `paired` are the
    events at the LSNs of the births.
    """
    leaving = paired.where(F.col(naming.OP) == "d")
    leaving = leaving.select(
        *_PAIR,
        F.struct(
            F.col(naming.POSITION).alias(_LEFT_AT),
            F.struct(naming.EPOCH, naming.LSN).alias(_WAL_ORDER),
            *_old_keys(table),
        ).alias("left"),
    )
    left = born.join(leaving, list(_PAIR)).groupBy(_CREATED_AT).agg(F.max("left").alias("left"))
    left = left.select(_CREATED_AT, "left.*")
    births = events.where(is_carried_creation(events)).select(
        *(key.alias(f"cdc__born_{i}") for i, key in enumerate(compared_keys(table))),
        F.struct(F.col(naming.POSITION).alias(_BORN_AT), *_PAIR).alias("birth"),
    )
    own = [F.col(f"cdc__born_{i}") == F.col(name) for i, name in enumerate(_old_names(table))]
    before = [
        F.col(f"birth.{_BORN_AT}") < F.col(_LEFT_AT),
        F.struct(f"birth.{naming.EPOCH}", f"birth.{naming.LSN}") < F.col(_WAL_ORDER),
    ]
    born_before = left.join(births, [*own, *before], "left")
    spans = born_before.groupBy(*left.columns).agg(F.max("birth").alias("birth"))
    return spans.select(*left.columns, "birth.*")


def _old_names(table: Table) -> list[str]:
    return [f"cdc__old_{index}" for index in range(len(table.key))]


def _old_keys(table: Table) -> list[Expression]:
    names = zip(compared_keys(table), _old_names(table), strict=True)
    return [key.alias(old) for key, old in names]


def _origins(spans: DataFrame, log: DataFrame, table: Table) -> DataFrame:
    """Find the newest earlier value of each column, by the position of the creation.

    Another row may have had the key before: values from before the row's birth do not count.
    """
    images = log.where(~F.col(naming.OP).isin("d", "t"))
    newest = (
        F.max_by(_held(column), _held_at(column)).alias(f"cdc__from_{column}")
        for column in table.toastable
    )
    return images.join(spans, _is_within(spans, log, table)).groupBy(_CREATED_AT).agg(*newest)


def _is_within(spans: DataFrame, log: DataFrame, table: Table) -> list[Expression]:
    names = zip(compared_keys(table), _old_names(table), strict=True)
    own = [key == spans[old] for key, old in names]
    at = log[naming.POSITION]
    return [*own, at < spans[_LEFT_AT], at >= F.coalesce(spans[_BORN_AT], F.lit(""))]


def _held(column: str) -> Expression:
    """Select the column's value as a struct, to distinguish a NULL that was sent."""
    return F.struct(F.col(SPARK.name(column)).alias("held"))


def _held_at(column: str) -> Expression:
    """Select the event's position if it has the column's value, otherwise NULL."""
    available = F.col(naming.UNAVAILABLE).isNull() | ~F.array_contains(naming.UNAVAILABLE, column)
    return F.when(available, F.col(naming.POSITION))


def _chain_origins(
    creations: DataFrame, log: DataFrame, table: Table, held: ExitStack
) -> DataFrame:
    """Find what `_origins` finds, for rows that changed their keys any number of times.

    Resolves every key change of the changelog, in as many rounds as the longest chain's length has
    binary digits. Only positions and keys are followed; values are read once.
    """
    born = log.where(is_carried_creation(log)).select(
        F.col(naming.POSITION).alias(_CREATED_AT), *_PAIR
    )
    spans = held.enter_context(persisted(_step_back(born, log, log, table)))
    found = [F.col(f"cdc__at_{column}") for column in table.toastable]
    origins = _doubled(_own_places(spans, log, table), table)
    origins = origins.join(
        creations.select(F.col(naming.POSITION).alias(_CREATED_AT)), _CREATED_AT, "left_semi"
    )
    places = origins.select("*", F.explode(F.array_distinct(F.array(*found))).alias(_PLACE))
    sources = places.join(log.withColumn(_PLACE, _place(table)), _PLACE)
    place = F.col(_PLACE)
    return sources.groupBy(_CREATED_AT).agg(
        *(
            F.max_by(_held(column), F.when(place == F.col(f"cdc__at_{column}"), place)).alias(
                f"cdc__from_{column}"
            )
            for column in table.toastable
        )
    )


def _place(table: Table) -> Expression:
    return F.struct(F.col(naming.POSITION).alias("at"), *_old_keys(table))


def _own_places(spans: DataFrame, log: DataFrame, table: Table) -> DataFrame:
    """Find the place of each column's newest value in each span; NULL if it has none."""
    images = log.where(~F.col(naming.OP).isin("d", "t"))
    newest = (
        F.max(F.when(_held_at(column).isNotNull(), _place(table))).alias(f"cdc__at_{column}")
        for column in table.toastable
    )
    within = spans.join(images, _is_within(spans, images, table), "left")
    return within.groupBy(_CREATED_AT, _BORN_AT).agg(*newest)


def _doubled(spans: DataFrame, table: Table) -> DataFrame:
    """Fill missing values of each span from the spans before it, by pointer doubling.

    Each round doubles how far a span looks back. The checkpoint cuts Spark's plan, which would
    double with it.
    """
    found = [f"cdc__at_{column}" for column in table.toastable]
    spans = spans.select(_CREATED_AT, _BORN_AT, *found).localCheckpoint()
    while not spans.where(F.col(_BORN_AT).isNotNull()).isEmpty():
        before = spans.select(
            F.col(_CREATED_AT).alias("cdc__birth"),
            F.col(_BORN_AT).alias("cdc__born_before"),
            *(F.col(at).alias(f"{at}_before") for at in found),
        )
        values = [F.coalesce(at, f"{at}_before").alias(at) for at in found]
        earlier = F.col("cdc__born_before").alias(_BORN_AT)
        joined = spans.join(before, F.col(_BORN_AT) == F.col("cdc__birth"), "left")
        spans = joined.select(_CREATED_AT, earlier, *values).localCheckpoint()
    return spans


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
