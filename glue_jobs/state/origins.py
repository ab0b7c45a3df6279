"""Values that a changed key takes along.

An UPDATE of a key arrives as a delete of the old key and a creation of the new one. A TOAST value
that did not change is in neither event: it is the old key's. Firehose hands over no headers, so the
pair is found in the log itself, by equal (epoch, LSN, transaction): not by the previous commit,
which a connector that restarts between the two may name otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.plan import Table

_PAIR = (naming.EPOCH, naming.LSN, naming.TX_ID)
_IS_PENDING = "cdc__is_pending"
_LONGEST_CHAIN = 64  # key changes in a row that all carry the same unchanged value


@contextmanager
def with_origins(pending: DataFrame, log: DataFrame, table: Table) -> Iterator[DataFrame]:
    """The pending changes, creations of changed keys completed with the old keys' values.

    A value that no event of the log holds stays unavailable. Costs looks at the log, so callers
    ask only for batches that hold such a creation. Holds its steps in memory as long as the block
    lasts.
    """
    with ExitStack() as held:
        chain = _with_earlier_links(pending, log, table, held)
        still_open = _open_values(chain)
        for _ in range(_LONGEST_CHAIN):
            if still_open == 0:
                break
            chain = _held_in(held, _complete_once(chain, log, table))
            before, still_open = still_open, _open_values(chain)
            if still_open == before:
                break
        yield chain.where(_IS_PENDING).select(*pending.columns)


def _held_in(held: ExitStack, step: DataFrame) -> DataFrame:
    step = step.cache()
    held.callback(step.unpersist)
    return step


def carried_creations(log: DataFrame, lowest_lsn: int) -> DataFrame:
    """The log's creations without a value that may belong to deletes from this LSN on.

    Of a chain of changed keys all later creations wait for the first one's value: the row's lock
    keeps their LSNs in order.
    """
    return log.where(is_carried_creation(log) & (log[naming.LSN] >= lowest_lsn))


def _with_earlier_links(
    pending: DataFrame, log: DataFrame, table: Table, held: ExitStack
) -> DataFrame:
    """The pending changes and, marked as not pending, the key changes that theirs go back to.

    An old key may itself have come from a key change, applied in an earlier batch: what that took
    along stands in no event of its own.
    """
    chain = pending.withColumn(_IS_PENDING, F.lit(True))
    for _ in range(_LONGEST_CHAIN):
        origins = _held_values(chain, log, table).select(F.col("cdc__life").alias(naming.POSITION))
        known = chain.select(naming.POSITION)
        links = log.where(is_carried_creation(log)).join(
            origins.distinct().join(known, naming.POSITION, "left_anti"),
            naming.POSITION,
            "left_semi",
        )
        links = links.select(*pending.columns).withColumn(_IS_PENDING, F.lit(False))
        links = _held_in(held, links)
        if links.isEmpty():
            break
        chain = chain.unionByName(links)
    return chain


def _open_values(changes: DataFrame) -> int:
    opened = changes.where(is_carried_creation(changes))
    total = F.coalesce(F.sum(F.size(naming.UNAVAILABLE)), F.lit(0))
    return int(opened.select(total).collect()[0][0])


def is_carried_creation(changes: DataFrame) -> Expression:
    """Whether the event is the creation of a changed key that lacks a value."""
    return (changes[naming.OP] == "c") & changes[naming.UNAVAILABLE].isNotNull()


def _complete_once(pending: DataFrame, log: DataFrame, table: Table) -> DataFrame:
    """One step back along each chain of key changes."""
    held = _held_values(pending, log, table)
    joined = pending.join(held, naming.POSITION, "left")
    still = F.array_compact(
        F.array(
            *(
                F.when(_lacks(column) & F.col(f"cdc__from_{column}").isNull(), F.lit(column))
                for column in table.carried
            )
        )
    )
    values = {
        column: F.when(_lacks(column), F.col(f"cdc__from_{column}.held")).otherwise(
            F.col(f"`{column}`")
        )
        for column in table.carried
    }
    is_creation = is_carried_creation(pending)
    completed = joined.withColumn(
        "cdc__still",
        F.when(is_creation, F.when(F.size(still) > 0, still)).otherwise(
            pending[naming.UNAVAILABLE]
        ),
    ).withColumns(values)
    return completed.withColumn(naming.UNAVAILABLE, F.col("cdc__still")).select(*pending.columns)


def _lacks(column: str) -> Expression:
    return F.coalesce(
        F.array_contains(naming.UNAVAILABLE, column) & (F.col(naming.OP) == "c"), F.lit(False)
    )


def _held_values(pending: DataFrame, log: DataFrame, table: Table) -> DataFrame:
    """For each carried creation, by its position: the old key's newest value of each column.

    Only of the row that the key change ended: a key may have been another row's before, and values
    from before `cdc__life`, where that row began, are not its own.
    """
    creations = pending.where(is_carried_creation(pending)).select(
        F.col(naming.POSITION).alias("cdc__created_at"), *_PAIR
    )
    events = log.unionByName(pending.select(*log.columns))  # pending may know more: a chain's steps
    deletions = events.where(F.col(naming.OP) == "d").select(
        *(F.col(f"`{key}`").alias(f"cdc__old_{index}") for index, key in enumerate(table.key)),
        F.col(naming.POSITION).alias("cdc__deleted_at"),
        *_PAIR,
    )
    pairs = creations.join(deletions, list(_PAIR)).distinct()
    match = [
        events[key].eqNullSafe(pairs[f"cdc__old_{index}"]) for index, key in enumerate(table.key)
    ]
    earlier = events.join(
        F.broadcast(pairs), [*match, events[naming.POSITION] < pairs["cdc__deleted_at"]]
    )
    begins = F.col(naming.OP).isin("c", "r")
    newest = earlier.groupBy(F.col("cdc__created_at").alias(naming.POSITION)).agg(
        F.max(F.when(begins, F.col(naming.POSITION))).alias("cdc__life"),
        *(_newest_held(column).alias(f"cdc__from_{column}") for column in table.carried),
    )
    own = {
        f"cdc__from_{column}": F.when(
            F.col(f"cdc__from_{column}.at") >= F.coalesce("cdc__life", F.lit("")),
            F.col(f"cdc__from_{column}"),
        )
        for column in table.carried
    }
    return newest.withColumns(own)


def _newest_held(column: str) -> Expression:
    """The column's newest value as a struct, so that a NULL that was sent stays one."""
    available = F.col(naming.UNAVAILABLE).isNull() | ~F.array_contains(naming.UNAVAILABLE, column)
    held = F.struct(F.col(f"`{column}`").alias("held"), F.col(naming.POSITION).alias("at"))
    return F.max_by(held, F.when(available & (F.col(naming.OP) != "d"), F.col(naming.POSITION)))
