"""Records after the newest event of Firehose's changelogs that will become no new row.

AWS does not show how far Firehose has read. A record after the newest event may be in flight, but
it may also be a tombstone, one of an erased row, one that was redriven, whose row has no offset, or
one that the function refuses. Without these, a topic's last records would be waited for in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.record_key import comparable_key
from cdclake.debezium.refusals import RefusedEvent
from cdclake.firehose.erased_rows import Erased, ErasedEvent
from cdclake.firehose.rows import DeliveredRows
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify.topic_records import Ranges, ReadRecord
from cdclake.plan import Plan, Table

PAGE_RECORDS = 500  # of each partition; reading stops at a record that may be in flight

_NOWHERE = Place(partition=None, offset=None)  # as a redrive decodes it
Identity = tuple[str, tuple[Any, ...]]  # position without an offset, and key
ReadRecords = Callable[[str, Ranges], Sequence[ReadRecord]]


class SettledRecords:
    """Search for the first record of a topic that may still become a row of a changelog.

    A record that is settled stays so: the next search begins after it.
    """

    def __init__(self, reader: Reader, plan: Plan, read: ReadRecords) -> None:
        self._reader, self._read = reader, read
        self._rows = DeliveredRows(plan)
        self._found: dict[str, dict[int, int]] = {}  # by topic

    def after(
        self,
        topic: str,
        reached: Mapping[int, int],
        ends: Mapping[int, int],
        erased: Erased,
        until: float,
    ) -> dict[int, int]:
        """Return by partition the offset of the first record that is not settled, or its end.

        The records before the offsets `reached` are settled. One page is read in any case, and none
        begins after the monotonic time `until`: the offset of a record that was not read is
        returned then, and the next call continues there.
        """
        found = self._found.setdefault(topic, {})
        found |= {p: max(offset, found.get(p, 0)) for p, offset in reached.items()}
        while ranges := dict(_pages(found, ends)):
            open_at = self._first_open(self._read(topic, ranges), erased)
            found |= {p: open_at.get(p, following) for p, (_, following) in ranges.items()}
            if open_at or time.monotonic() > until:
                break
        return dict(found)

    def _first_open(self, records: Iterable[ReadRecord], erased: Erased) -> dict[int, int]:
        """Return by partition the offset of the first of these records that is not settled."""
        candidates = [
            (record, *expected)
            for record in records
            if (expected := self._expected(record, erased)) is not None
        ]
        tables = {table.name: table for _, table, _ in candidates}
        redriven = {
            (name, identity)
            for name, table in tables.items()
            for identity in self._redriven(table, [i for _, t, i in candidates if t == table])
        }
        found: dict[int, int] = {}
        for record, table, identity in candidates:
            if (table.name, identity) not in redriven:
                found.setdefault(record.partition, record.offset)
        return found

    def _expected(self, record: ReadRecord, erased: Erased) -> tuple[Table, Identity] | None:
        """Return the table and identity of the record's row; None if Firehose makes no row of it.

        That includes what its function refuses, whether or not Firehose has come that far.
        """
        try:
            decoded = self._rows.decode(record.value or b"", _NOWHERE, 0, erased)
        except (ErasedEvent, RefusedEvent):
            return None
        if decoded is None:
            return None
        table, row = decoded
        return table, (row[naming.POSITION], _key(table, (row[name] for name in table.key)))

    def _redriven(self, table: Table, sought: Sequence[Identity]) -> Iterator[Identity]:
        """Yield those of the rows that the changelog has without an offset."""
        keys = ", ".join(DUCKDB.name(name) for name in table.key)
        statement = (
            f"SELECT {naming.POSITION}, {keys} FROM {DUCKDB.name(table.changes)}"
            f" WHERE {naming.OFFSET} IS NULL"
            f" AND {naming.POSITION} IN (SELECT unnest(?::VARCHAR[]))"
        )
        with self._reader.open([table]) as session:
            rows = session.execute(statement, [[position for position, _ in sought]]).fetchall()
        for position, *key in rows:
            yield position, _key(table, key)


def _pages(
    begins: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the next range of each partition that has more records."""
    for partition, end in ends.items():
        begin = begins.get(partition, 0)
        if begin < end:
            yield partition, (begin, min(end, begin + PAGE_RECORDS))


def _key(table: Table, values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(comparable_key(table, values))
