"""Values that a changed key takes along.

An UPDATE of a key arrives as a delete of the old key and a creation of the new one. A TOAST value
that did not change is in neither event: it is the old key's. Firehose hands over no headers, so the
pair is found in the log itself, by equal (epoch, LSN, transaction): not by the previous commit,
which a connector that restarts between the two may name otherwise.
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
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.plan import Table

_PAIR = (naming.EPOCH, naming.LSN, naming.TX_ID)
_MAX_KEY_CHANGE_CHAIN = 64  # key changes in a row that all carry the same unchanged value

# A span: one key that a creation's row had before, from its birth under that key to its leaving.
_CREATED_AT, _LEFT_AT, _BORN_AT = "cdc__created_at", "cdc__left_at", "cdc__born_at"


@contextmanager
def with_origins(pending: DataFrame, log: DataFrame, table: Table) -> Iterator[DataFrame]:
    """The pending changes, creations of changed keys completed with the old keys' values.

    `log` is the whole log, the pending changes among it. A value that no event of the log holds
    stays unavailable. Costs looks at the log, so callers ask only for batches that hold such a
    creation. Holds its steps in memory as long as the block lasts.
    """
    with ExitStack() as held:
        creations = held.enter_context(persisted(pending.where(is_carried_creation(pending))))
        spans = _spans(creations, log, table, held)
        if not spans:
            yield pending
            return
        origins = _origins(reduce(DataFrame.unionByName, spans), log, table)
        filled = held.enter_context(persisted(_filled(creations, origins, table)))
        yield pending.where(~is_carried_creation(pending)).unionByName(filled)


def carried_creations(log: DataFrame, lowest_lsn: int) -> DataFrame:
    """The log's creations without a value that may belong to deletes from this LSN on.

    Of a chain of changed keys all later creations wait for the first one's value: the row's lock
    keeps their LSNs in order.
    """
    return log.where(is_carried_creation(log) & (log[naming.LSN] >= lowest_lsn))


def is_carried_creation(changes: DataFrame) -> Expression:
    """Whether the event is the creation of a changed key that lacks a value."""
    return (changes[naming.OP] == "c") & changes[naming.UNAVAILABLE].isNotNull()


def _spans(creations: DataFrame, log: DataFrame, table: Table, held: ExitStack) -> list[DataFrame]:
    """The creations' spans, step by step back, as far as rows were born by a key change."""
    born = creations.select(F.col(naming.POSITION).alias(_CREATED_AT), *_PAIR)
    spans: list[DataFrame] = []
    while len(spans) < _MAX_KEY_CHANGE_CHAIN:
        lowest, highest = born.agg(F.min(naming.LSN), F.max(naming.LSN)).collect()[0]
        if lowest is None:
            break
        events = log.where(F.col(naming.LSN) <= highest)
        step = _step_back(born, events, events.where(F.col(naming.LSN) >= lowest), table)
        spans.append(held.enter_context(persisted(step)))
        born = step.where(F.col(_BORN_AT).isNotNull()).select(_CREATED_AT, *_PAIR)
    return spans


def _step_back(born: DataFrame, events: DataFrame, beside: DataFrame, table: Table) -> DataFrame:
    """The keys that rows had before these births, with the births under those, if they are any.

    A birth is NULL where the row was inserted under that key, with all its values. `beside` are
    the events at the LSNs of the births.
    """
    leaving = beside.where(F.col(naming.OP) == "d")
    leaving = leaving.select(
        *_PAIR, F.struct(F.col(naming.POSITION).alias(_LEFT_AT), *_old_keys(table)).alias("left")
    )
    left = born.join(leaving, list(_PAIR)).groupBy(_CREATED_AT).agg(F.max("left").alias("left"))
    left = left.select(_CREATED_AT, "left.*")
    births = events.where(is_carried_creation(events)).select(
        *(F.col(SPARK.name(key)).alias(f"cdc__born_{i}") for i, key in enumerate(table.key)),
        F.struct(F.col(naming.POSITION).alias(_BORN_AT), *_PAIR).alias("birth"),
    )
    own = [F.col(f"cdc__born_{i}") == F.col(name) for i, name in enumerate(_old_names(table))]
    born_before = left.join(births, [*own, F.col(f"birth.{_BORN_AT}") < F.col(_LEFT_AT)], "left")
    spans = born_before.groupBy(*left.columns).agg(F.max("birth").alias("birth"))
    return spans.select(*left.columns, "birth.*")


def _old_names(table: Table) -> list[str]:
    return [f"cdc__old_{index}" for index in range(len(table.key))]


def _old_keys(table: Table) -> list[Expression]:
    names = zip(table.key, _old_names(table), strict=True)
    return [F.col(SPARK.name(key)).alias(old) for key, old in names]


def _origins(spans: DataFrame, log: DataFrame, table: Table) -> DataFrame:
    """By the creation's position, the newest value of each column that the row had before.

    A key may have been another row's, too: values from before the row's birth are not its own.
    """
    own = [log[key] == spans[old] for key, old in zip(table.key, _old_names(table), strict=True)]
    at = log[naming.POSITION]
    within = [at < spans[_LEFT_AT], at >= F.coalesce(spans[_BORN_AT], F.lit(""))]
    images = log.where(~F.col(naming.OP).isin("d", "t"))
    return (
        images.join(spans, [*own, *within])
        .groupBy(_CREATED_AT)
        .agg(*(_newest_held(column).alias(f"cdc__from_{column}") for column in table.toastable))
    )


def _newest_held(column: str) -> Expression:
    """The column's newest value as a struct, so that a NULL that was sent stays one."""
    available = F.col(naming.UNAVAILABLE).isNull() | ~F.array_contains(naming.UNAVAILABLE, column)
    held = F.struct(F.col(SPARK.name(column)).alias("held"))
    return F.max_by(held, F.when(available, F.col(naming.POSITION)))


def _filled(creations: DataFrame, origins: DataFrame, table: Table) -> DataFrame:
    """The creations with the values that were found, which no longer count as unavailable."""
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
