"""Many scenarios in one table: each with its own keys, transactions and Kafka partitions.

A step is one batch of the engine with every scenario's batch of that number, so that all of them
together cost little more than one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.debezium.position import history_part
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import AppliedThrough, current_view
from cdclake.jobs.apply.rebuilt_state import applied_through, rebuild_state
from cdclake.plan import Plan
from tests.model.scenarios import Case, Key, Live, Place, Record, offsets_of
from tests.model.shapes import shaped_table
from tests.spark.events import Engine

KEYS_EACH = 1000
SHARED_PARTITIONS = 4_000_000  # from here on: of instances that stand in partitions with others
Owners = dict[tuple[int, int], tuple[int, Record]]  # by partition and offset: place, record


@dataclass(frozen=True, slots=True)
class Instance:
    """One case at its place, in the batches that it is run in."""

    case: Case
    place: Place
    batches: list[list[Record]]
    shares: bool  # its partitions with others


def written(case: Case, number: int) -> Instance:
    """The case as its file has it."""
    place = Place(number=number)
    return Instance(case, place, case.records(place), shares=can_be_cut_anew(case))


def in_one_batch(case: Case, number: int) -> Instance:
    """All events in one batch, the last first."""
    place = Place(number=number)
    records = [record for batch in case.records(place) for record in batch]
    return Instance(case, place, [records[::-1]], shares=True)


def can_be_cut_anew(case: Case) -> bool:
    """Whether the offsets do not matter: a case of its own offsets runs as it is written only."""
    records = [(r.partition, r.offset) for batch in case.records() for r in batch]
    return not case.alone and len(set(records)) == len(records)


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one case."""

    then: dict[int, Live]
    state: Live
    missing: dict[Key, list[str]]
    log: str
    refused: list[str]
    current: Live
    current_of_log: Live | None  # None if it was not asked for
    rebuilt: Live


class Packed:
    """A table with the scenarios that ran in it."""

    def __init__(
        self, spark: SparkSession, shape: str, name: str, *, is_partitioned: bool = False
    ) -> None:
        table = shaped_table(shape, name)
        if is_partitioned:  # by the key, and by a value: rows and tombstones move
            fields = [f"bucket(2, {table.key[0]})", table.value_columns[0].name]
            table = replace(table, partition_by=tuple(fields))
        plan = Plan(name="x", source_database="d", lake_database="cdc", tables=(table,))
        self.engine = Engine(spark, plan)
        self.table = table
        self.owners: Owners = {}
        self.then: dict[int, dict[int, Live]] = {}  # step -> place -> rows
        self._shared_next: dict[int, int] = {}
        self._epoch = 1

    def run(
        self, instances: list[Instance], *, replayed: int = 0, reads_log: bool = True
    ) -> dict[int, Seen]:
        """Run all steps of all instances, some of them twice; return each one's outcome by place.

        The view over the changelog alone costs as much as a batch: `reads_log` leaves it out.
        """
        for step in range(max(len(instance.batches) for instance in instances)):
            self._step([i for i in instances if len(i.batches) > step], step)
            if replayed and step % replayed == 0:
                self._step([i for i in instances if len(i.batches) > step], step)
            if any(step + 1 in i.case.then for i in instances):
                self.then[step + 1] = self._live(self._state())
        return self._seen(instances, reads_log)

    def _step(self, instances: Iterable[Instance], step: int) -> None:
        records = []
        for instance in instances:
            own = instance.batches[step]
            placed = self._share(own) if instance.shares else own
            records += placed
            for record in placed:
                at = (record.partition, record.offset or 0)
                self.owners[at] = (instance.place.number, record)
        self._epoch = max([self._epoch, *(2 for r in records if b'epoch":"2"' in (r.value or b""))])
        rows: list[tuple[Any, ...]] = [
            (self.table.topic, r.partition, r.offset, r.key, r.value, None) for r in records
        ]
        self.engine.run_records(rows, dict(offsets_of(records)), epoch=self._epoch)

    def _share(self, records: list[Record]) -> list[Record]:
        """The records in partitions that all such instances share, at the next offsets."""
        in_order = sorted(records, key=lambda r: (r.partition, r.offset or 0))
        placed = {}
        for record in in_order:
            partition = SHARED_PARTITIONS + record.partition % 4
            offset = self._shared_next.get(partition, partition * 1_000_000)
            self._shared_next[partition] = offset + 1
            placed[id(record)] = Record(partition, offset, record.key, record.value)
        return [placed[id(record)] for record in records]

    def _state(self) -> list[Any]:
        """Return the live rows: none is below the truncates applied, as views take for granted."""
        lake = self.engine.lake
        rows = lake.read(self.table.name).where(f"NOT {naming.DELETED}").collect()
        floor = applied_through(lake, self.table).floor
        assert all(history_part(row[naming.POSITION]) >= floor for row in rows)
        return rows

    def _live(self, rows: Iterable[Any]) -> dict[int, Live]:
        found: dict[int, Live] = {}
        for row in rows:
            place, key = self._own_key(row)
            values = tuple(row[column.name] for column in self.table.value_columns)
            assert key not in found.setdefault(place, {}), f"two rows of {key}"
            found[place][key] = values
        return found

    def _own_key(self, row: Any) -> tuple[int, Key]:
        place, first = divmod(row["id"], KEYS_EACH)
        return place, (first, *(row[name] for name in self.table.key[1:]))

    def _seen(self, instances: list[Instance], reads_log: bool) -> dict[int, Seen]:
        state = self._state()
        refused = self._refused()
        log = self._log(alone=instances[0].case.alone)
        applied = applied_through(self.engine.lake, self.table)
        current = self._live(self._current(applied, "true"))
        of_log = self._live(self._current(AppliedThrough(), "false")) if reads_log else None
        live = self._live(state)
        rebuild_state(self.engine.lake, self.table)
        rebuilt = self._live(self._state())
        places = [instance.place.number for instance in instances]
        missing: dict[int, dict[Key, list[str]]] = {place: {} for place in places}
        for row in state:
            if row[naming.TOAST_MISSING]:
                place, key = self._own_key(row)
                missing[place][key] = row[naming.TOAST_MISSING]
        return {
            place: Seen(
                then={step: rows.get(place, {}) for step, rows in self.then.items()},
                state=live.get(place, {}),
                missing=missing[place],
                log=" ".join(log.get(place, [])),
                refused=refused.get(place, []),
                current=current.get(place, {}),
                current_of_log=None if of_log is None else of_log.get(place, {}),
                rebuilt=rebuilt.get(place, {}),
            )
            for place in places
        }

    def _current(self, applied: AppliedThrough, where: str) -> list[Any]:
        qualified = self.engine.lake.qualified
        view = current_view(
            self.table,
            state=f"(SELECT * FROM {qualified(self.table.name)} WHERE {where})",
            changes=qualified(self.table.changes),
            applied=applied,
            dialect=SPARK,
        )
        return self.engine.spark.sql(view).collect()

    def _log(self, *, alone: bool) -> dict[int, list[str]]:
        words: dict[int, list[str]] = {}
        for row in sorted(self.engine.log(), key=_place_in_log):
            at = (row[naming.PARTITION], row[naming.OFFSET])
            place = 0 if alone else self.owners[at][0]
            key = self._own_key(row)[1] if row["id"] is not None else ()
            if row[naming.OP] == "d" and self.table.replica_identity != "full":
                assert not any(row[c.name] for c in self.table.value_columns), "made-up values"
            words.setdefault(place, []).append(row[naming.OP] + "/".join(map(str, key)))
        return words

    def _refused(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        rows = self.engine.quarantined()
        for row in sorted(rows, key=lambda row: (row["offset"], row["partition"])):
            place, sent = self.owners[(row["partition"], row["offset"])]
            assert (row["key"], row["value"]) == (sent.key, sent.value)
            found.setdefault(place, []).append(row["reason"].split(":")[0])
        return found


def _place_in_log(row: Any) -> tuple[str, int, int]:
    """As the reference orders: offsets of different partitions say nothing."""
    position = history_part(row[naming.POSITION])
    return position, "tdcur".index(row[naming.OP]), row[naming.OFFSET]
