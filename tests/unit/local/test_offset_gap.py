"""Records that a stopped table has missed, and how long Kafka keeps them."""

from cdclake.local.lake.offset_gap import measure_gap
from cdclake.local.lake.topics import TopicContents

DAY_MS = 86_400_000


def contents(**changes: object) -> TopicContents:
    facts = {"bounds": {0: (0, 10)}, "written_ms": {0: 0}, "retention_ms": 7 * DAY_MS}
    return TopicContents(**{**facts, **changes})  # type: ignore[arg-type]


def test_a_gap_is_kept_until_its_oldest_event_goes() -> None:
    gap = measure_gap(contents(written_ms={0: DAY_MS}), {0: 4})
    assert (gap.from_offsets, gap.events, gap.lost_events) == ({0: 4}, 6, 0)
    assert gap.kept_until == "1970-01-09T00:00:00+00:00"


def test_what_kafka_has_deleted_is_lost() -> None:
    gap = measure_gap(contents(bounds={0: (7, 10)}), {0: 4})
    assert (gap.events, gap.lost_events) == (3, 3)
    assert measure_gap(contents(bounds={0: (10, 10)}, written_ms={}), {0: 4}).kept_until is None


def test_a_partition_that_the_table_never_read_is_read_from_its_beginning() -> None:
    bounds, written = {0: (0, 10), 1: (5, 9)}, {0: 3 * DAY_MS, 1: 2 * DAY_MS}
    gap = measure_gap(contents(bounds=bounds, written_ms=written), {0: 4})
    assert (gap.from_offsets, gap.events, gap.lost_events) == ({0: 4, 1: 5}, 10, 0)
    assert gap.kept_until == "1970-01-10T00:00:00+00:00"


def test_without_a_limit_of_time_no_end_is_promised() -> None:
    assert measure_gap(contents(retention_ms=None), {0: 4}).kept_until is None
    assert measure_gap(contents(), {0: 10}).kept_until is None
