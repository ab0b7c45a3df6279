"""Replay: append quarantined events that are accepted now to the changelog, at their position.

The stream does this itself, so that the changelog has only one writer. It appends the events, then
removes them from quarantine. After a crash in between, or a second replay, events that the
changelog already has are recognized by their identity. Rows that a complete read of the table has
not found since are deleted in the commit that appends their events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.iceberg.collapse import replay_age
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.operations.stale_rows import deletes_of_unread
from cdclake.jobs.stream.append import next_stamp
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.decoded_rows import DecodedRows, decoded_again
from cdclake.jobs.stream.deduplicate import not_in_log, without_repeats
from cdclake.jobs.stream.kafka_range import RECORD_COLUMNS
from cdclake.jobs.stream.partition_summary import PartitionSummary
from cdclake.jobs.stream.refusal_reasons import Reason
from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Result of the replay of a table's quarantined events."""

    replayed: int  # appended to the changelog
    known: int  # accepted, but already in the changelog, or duplicates in quarantine
    withheld: int  # of these two, the events that a rule had withheld
    refused: Mapping[str, int]  # by reason; they stay in quarantine unchanged

    @property
    def released(self) -> int:
        """Return the number of events that left quarantine."""
        return self.replayed + self.known


def replay_quarantine(stream: TableStream, *, epoch: int) -> Replayed:
    """Append the quarantined events that are accepted now, and apply them to the state table.

    The changelog's stamp keeps its Kafka offsets. `epoch` is the stream's, for a changelog that has
    no stamp yet. Idempotent.
    """
    table, plan = stream.table, stream.plan
    with decoded_again(_held(stream), table, plan, _too_old(table, plan.history_days)) as decoded:
        accepted = sum(part.accepted for part in decoded.parts)
        replayed = _append(stream, decoded, epoch) if accepted else 0
        withheld = _release(stream, decoded.rows) if accepted else 0
        refused = _reasons(decoded.rows)
    return Replayed(
        replayed=replayed, known=accepted - replayed, withheld=withheld, refused=refused
    )


def _held(stream: TableStream) -> DataFrame:
    """Return the table's quarantined records as Kafka had them, all from one snapshot."""
    return _quarantine(stream).select(*RECORD_COLUMNS)


def _quarantine(stream: TableStream) -> DataFrame:
    snapshot = stream.lake.stamped(naming.QUARANTINE).snapshot_id
    held = stream.lake.read(naming.QUARANTINE, snapshot)
    mine = (F.col("topic") == stream.table.topic) & (F.col("table") == stream.table.name)
    return held.where(mine)


def _too_old(table: Table, history_days: int) -> Reason:
    """Refuse events of rows whose later events may be purged or collapsed."""
    age = replay_age(table, history_days)
    if age is None:
        return F.lit(False), refusals.TOO_OLD
    is_old = F.col(naming.COMMITTED_AT) < F.lit(datetime.now(UTC) - age)
    return ~F.col(naming.OP).isin("d", "t") & is_old, refusals.TOO_OLD


def _append(stream: TableStream, decoded: DecodedRows, epoch: int) -> int:
    changelog = stream.read_changelog()
    stamped, stamp = changelog.stamped, changelog.stamp
    rows = without_repeats(decoded.rows.where(F.col(REFUSAL).isNull()), stream.table)
    log = stream.lake.read(stream.table.changes, stamped.snapshot_id)
    if stamped.snapshot_id is not None:
        lowest = min(part.lowest_lsn for part in decoded.parts if part.lowest_lsn is not None)
        rows = not_in_log(rows, log, stream.table, lowest)
    marked = _marked(stamp, decoded.parts, epoch)
    with persisted(rows), persisted(deletes_of_unread(stream, log, rows)) as deletes:
        events = rows.unionByName(deletes, allowMissingColumns=True)
        added = stream.add(events, read_from=stamped.snapshot_id, stamp=marked)
        return added - deletes.count()


def _marked(stamp: ChangesStamp, summaries: Sequence[PartitionSummary], epoch: int) -> ChangesStamp:
    """Add these events' LSNs to the stamp, so that redelivered events are looked up."""
    marked = next_stamp(
        stamp, summaries, epoch=stamp.epoch or epoch, ingested_at=stamp.ingested_through
    )
    return replace(marked, offsets=stamp.offsets)


def _release(stream: TableStream, decoded: DataFrame) -> int:
    """Delete exactly the accepted records from quarantine; count those that a rule had withheld.

    An accepted record stays as long as a refused one has its place, in a topic of the same name.
    """
    before = _withheld(stream)
    _delete(stream, _places(decoded, F.col(REFUSAL).isNull()))
    return before - _withheld(stream)


def release_refused(stream: TableStream, before: Mapping[int, int]) -> int:
    """Delete refused events below these offsets, by partition, from quarantine; count them.

    Call it when every row of the table has been read since. Events that a rule withholds stay, as
    they are there on purpose, and so do those that a replay would accept: the changelog lacks
    them. All stay if a later event is refused, or withheld, whose unsent large value one of them
    may have. Idempotent.
    """
    table, plan = stream.table, stream.plan
    is_older = " OR ".join(
        f"{naming.PARTITION} = {partition} AND {naming.OFFSET} < {end}"
        for partition, end in before.items()
    )
    held = _quarantine(stream).count()
    if not held or not is_older:
        return 0
    is_refused = f"{REFUSAL} IS NOT NULL AND NOT {is_withheld(REFUSAL)}"
    lacks_value = f"({is_refused} OR {naming.UNAVAILABLE} IS NOT NULL) AND NOT ({is_older})"
    with decoded_again(_held(stream), table, plan, _too_old(table, plan.history_days)) as decoded:
        rows = decoded.rows
        if table.toastable and not rows.where(lacks_value).isEmpty():
            return 0
        settled = F.expr(f"({is_older}) AND {is_refused}")
        _delete(stream, _places(rows, settled), f"NOT {is_withheld('q.reason')}")
    return held - _quarantine(stream).count()


def note_released(place: TableProgress, stream: TableStream, released: int) -> None:
    """Lower the count of refused events by those that were `released` from the quarantine.

    At most those that are in the quarantine remain: an operation that was killed before its
    progress was saved has released some already, and finds fewer when it is repeated.
    """
    place.quarantined = max(0, place.quarantined - released)
    if place.quarantined:
        held = _quarantine(stream).where(f"NOT {is_withheld('reason')}").count()
        place.quarantined = min(place.quarantined, held)


def _places(decoded: DataFrame, is_chosen: Expression) -> DataFrame:
    """Return the places that only records of the condition have."""
    place = [naming.PARTITION, naming.OFFSET]
    others = decoded.where(~is_chosen).select(*place)
    return decoded.where(is_chosen).select(*place).distinct().join(others, place, "left_anti")


def _delete(stream: TableStream, places: DataFrame, only: str = "true") -> None:
    """Delete the table's records at these places, those of the condition `only`."""
    statement = (
        f"MERGE INTO {stream.lake.qualified(naming.QUARANTINE)} AS q USING {{places}} AS s "
        f"ON q.topic = {SPARK.text(stream.table.topic)} AND q.`table` = "
        f"{SPARK.text(stream.table.name)} AND q.partition = s.{naming.PARTITION} "
        f"AND q.offset = s.{naming.OFFSET} AND {only} WHEN MATCHED THEN DELETE"
    )
    retry_on_conflict(  # with maintenance, or with what a poll or Firehose commits
        naming.QUARANTINE, lambda: stream.lake.spark.sql(statement, places=places)
    )


def _withheld(stream: TableStream) -> int:
    return _quarantine(stream).where(is_withheld("reason")).count()


def _reasons(decoded: DataFrame) -> dict[str, int]:
    """Count the refused events by reason; the values that break a rule are left out."""
    rows = decoded.where(F.col(REFUSAL).isNotNull()).groupBy(REFUSAL).count().collect()
    found: Counter[str] = Counter()
    for row in rows:
        found[refusals.without_value(row[REFUSAL])] += row["count"]
    return dict(found)
