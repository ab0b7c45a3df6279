"""Statistics of a decoded batch by Kafka partition, which decide how to process it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.stream.decode import REFUSAL
from cdclake.jobs.stream.fields import ABSENT, MISFITS, ODD
from cdclake.plan import Table

_BITS = 62  # of a bigint that are used


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """Statistics of one Kafka partition's share; LSNs are None without accepted events."""

    partition: int
    first_offset: int
    next_offset: int
    accepted: int
    rows_at_one_lsn: int  # greatest number of accepted events
    lowest_lsn: int | None
    highest_lsn: int | None
    lowest_deleted_lsn: int | None
    epoch: int | None
    lowest_epoch: int | None
    snapshot_read_at: int | None  # microseconds; one for all rows of a table's snapshot
    snapshot_read_until: int | None
    lowest_row_epoch: int | None  # of events with a row; next: their lowest previous commit
    lowest_row_prev: int | None
    flags: frozenset[str]  # those of `_FLAGS` that some event has
    unavailable: frozenset[str]  # columns with a value that was not sent

    def has(self, sign: str) -> bool:
        """Return whether some event has the flag."""
        return sign in self.flags


REFUSED = "refused"
TRUNCATE = "truncate"
CARRIED_KEY_CHANGE = "carried_key_change"  # a creation with unavailable values: a key changed
COMPLETE_ROW = "complete_row"  # has a row, and is not refused except for its key
LACKING_ROW = "lacking_row"  # the same, without a declared column
MISFIT = "misfit"  # has a value that does not fit the declared type
NEEDS_SLOW_DECODE = "odd_event"  # the plain decoder reads it wrongly

_ACCEPTED = f"{REFUSAL} IS NULL"
# Refused for its key: a dropped key column makes every key wrong.
_BY_KEY = f"({REFUSAL} LIKE 'NULL_KEY%' OR {REFUSAL} LIKE 'KEY_MISMATCH%')"
IS_ROW = f"{naming.OP} IN ('c', 'u', 'r') AND ({_ACCEPTED} OR {_BY_KEY})"
_FLAGS = {
    REFUSED: f"NOT ({_ACCEPTED})",
    TRUNCATE: f"{_ACCEPTED} AND {naming.OP} = 't'",
    CARRIED_KEY_CHANGE: f"{_ACCEPTED} AND {naming.OP} = 'c' AND {naming.UNAVAILABLE} IS NOT NULL",
    COMPLETE_ROW: f"{IS_ROW} AND {ABSENT} IS NULL",
    LACKING_ROW: f"{IS_ROW} AND {ABSENT} IS NOT NULL",
    MISFIT: f"{MISFITS} IS NOT NULL",
    NEEDS_SLOW_DECODE: ODD,
}
_LOWEST = (
    "first_offset", "lowest_epoch", "snapshot_read_at", "lowest_row_epoch", "lowest_row_prev",
)  # fmt: skip
_GREATEST = ("next_offset", "epoch", "snapshot_read_until")


class Summarizer:
    """Aggregation of one table's decoded batches; its expressions are built once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        words = list(_words(_conditions(table)))
        self._words = len(words)
        self._partition_and_lsn = [
            F.expr(f"{naming.PARTITION} AS partition"),
            F.expr(f"IF({_ACCEPTED}, {naming.LSN}, NULL) AS lsn"),
        ]
        self._at_one_lsn = _named(
            _counted()
            | {_word(index): f"bit_or({' | '.join(flags)})" for index, flags in enumerate(words)}
        )
        self._in_partition = _named(_counted_again(self._words))

    def summarize(self, changes: DataFrame) -> list[PartitionSummary]:
        """Compute one summary per Kafka partition of the decoded batch.

        Groups by LSN first, since two accepted events with the same LSN may be duplicates.
        """
        by_lsn = changes.groupBy(*self._partition_and_lsn).agg(*self._at_one_lsn)
        rows = by_lsn.groupBy("partition").agg(*self._in_partition).collect()
        return [_summary(row, self._table, self._words) for row in rows]


def _counted() -> dict[str, str]:
    """Return the aggregates over the events at one LSN.

    Only over numbers: a set or a minimum of strings would make Spark sort instead of hash. And only
    a few: each is planned again for every batch, even for a small one.
    """
    read_at = f"IF({_ACCEPTED} AND {naming.OP} = 'r', unix_micros({naming.COMMITTED_AT}), NULL)"
    return {
        "first_offset": f"min({naming.OFFSET})",
        "next_offset": f"max({naming.OFFSET}) + 1",
        "accepted": f"count_if({_ACCEPTED})",
        "deletes": f"bool_or({_ACCEPTED} AND {naming.OP} = 'd')",
        "epoch": f"max(IF({_ACCEPTED}, {naming.EPOCH}, NULL))",
        "lowest_epoch": f"min(IF({_ACCEPTED}, {naming.EPOCH}, NULL))",
        "snapshot_read_at": f"min({read_at})",
        "snapshot_read_until": f"max({read_at})",
        "lowest_row_epoch": f"min(IF({IS_ROW}, {naming.EPOCH}, NULL))",
        "lowest_row_prev": f"min(IF({IS_ROW}, {naming.PREV_COMMIT_LSN}, NULL))",
    }


def _counted_again(words: int) -> dict[str, str]:
    """Return the aggregates over the LSNs of a partition."""
    return {
        **{name: f"min({name})" for name in _LOWEST},
        **{name: f"max({name})" for name in _GREATEST},
        **{_word(index): f"bit_or({_word(index)})" for index in range(words)},
        "rows_at_one_lsn": "max(accepted)",
        "accepted": "sum(accepted)",
        "lowest_lsn": "min(lsn)",
        "highest_lsn": "max(lsn)",
        "lowest_deleted_lsn": "min(IF(deletes, lsn, NULL))",
    }


def _conditions(table: Table) -> list[str]:
    """Return the conditions of the flags, then of each column that may be unsent."""
    lacks = [
        f"array_contains({naming.UNAVAILABLE}, {SPARK.text(name)})" for name in table.toastable
    ]
    return [*_FLAGS.values(), *lacks]


def _words(conditions: Sequence[str]) -> Iterator[list[str]]:
    """Encode the conditions as bits of words."""
    for start in range(0, len(conditions), _BITS):
        word = conditions[start : start + _BITS]
        yield [f"IF({c}, {1 << bit}L, 0L)" for bit, c in enumerate(word)]


def _word(index: int) -> str:
    return f"word_{index}"


def _named(aggregates: Mapping[str, str]) -> list[Expression]:
    return [F.expr(f"{aggregate} AS {name}") for name, aggregate in aggregates.items()]


def _summary(row: Row, table: Table, words: int) -> PartitionSummary:
    found = row.asDict()
    bits = sum(found.pop(_word(index)) << index * _BITS for index in range(words))
    names = [*_FLAGS, *table.toastable]
    shown = [bool(bits >> place & 1) for place in range(len(names))]
    flags = frozenset(name for name, is_so in zip(_FLAGS, shown, strict=False) if is_so)
    carried = zip(table.toastable, shown[len(_FLAGS) :], strict=True)
    unavailable = frozenset(name for name, is_so in carried if is_so)
    return PartitionSummary(**found, flags=flags, unavailable=unavailable)
