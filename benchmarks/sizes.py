"""How large a measurement is: what counts, what fits into some minutes, what only shows it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.history import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """How a running lake is measured."""

    tables: int
    backlog: int  # changes that Debezium is given at once
    first_rate: float  # changes a second, the first to be tried
    probe_seconds: float
    hold_seconds: float  # for which a rate has to be held to count


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffering:
    """Nine deliveries side by side: for how long, their buffers' times, and the rate of each."""

    seconds: int  # a little more than a multiple of the longest time
    buffer_seconds: tuple[int, ...]
    records_a_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Sizes of the lakes of the scale measures."""

    files: tuple[int, int]  # of a state: few, and many
    scattered: int  # keys in a batch over these files
    backlog: int  # events of one table that wait
    wide_events: tuple[int, int]  # in a batch of a table of many columns: few, and many
    commits: tuple[int, int]  # before the batches that are measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Durations and rates of the contenders of N10 and N10a; rates are changes a second."""

    tables: int
    rows: int  # that a table opens with
    common_rate: int  # of a stretch by every contender
    first_rates: Mapping[str, int]  # the first to be tried, by contender
    most: int  # the greatest to be tried: what the source's core delivers
    warm_up_seconds: float
    trial_seconds: float
    stretch_seconds: float
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Rows of the table, changes a batch, batches with their warm-up, and how keys are drawn."""

    rows: int
    changes: int
    batches: int
    warm_up: int  # of the batches: until Java has compiled what they run
    keys: tuple[Keys, ...]
    events: int  # in a batch that is only decoded or appended
    log_files: int  # in a log that is already long
    history: int  # batches before a table is read
    loaded: int  # rows of a first load
    rounds: int  # first loads by each
    viewed: int  # rows of the table whose view is read
    streaming: Streaming
    buffering: Buffering
    scale: Scale
    race: Race
    measures: tuple[str, ...]


EVERY = (
    *("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "N10", "N10a"),
    *("N1", "N1a", "N7", "N7a", "N8", "N8a", "N8b", "N8c", "N8d", "N8e"),
)
SIZES = {
    "full": Size(
        rows=10_000_000,
        changes=20_000,
        batches=11,
        warm_up=6,
        keys=("zipf", "uniform"),
        events=200_000,
        log_files=10_000,
        history=100,
        loaded=5_000_000,
        rounds=3,
        viewed=1_000_000,
        streaming=Streaming(
            tables=20, backlog=300_000, first_rate=8000, probe_seconds=60, hold_seconds=300
        ),
        buffering=Buffering(seconds=2_715, buffer_seconds=(60, 300, 900), records_a_second=50),
        scale=Scale(
            files=(8, 8_000),
            scattered=10_000,
            backlog=3_000_000,
            wide_events=(1_000, 10_000),
            commits=(720, 43_200),
        ),
        race=Race(
            tables=20,
            rows=10_000,
            common_rate=1000,
            first_rates={"ours": 4000, "spark_merge": 1000, "flink_upsert": 4000},
            most=4500,
            warm_up_seconds=180,  # Java's compilers are busy for minutes, with one core
            trial_seconds=90,
            stretch_seconds=120,
            rounds=3,
        ),
        measures=EVERY,
    ),
    "short": Size(
        rows=1_000_000,
        changes=20_000,
        batches=5,
        warm_up=2,
        keys=("zipf",),
        events=100_000,
        log_files=1_000,
        history=20,
        loaded=500_000,
        rounds=1,
        viewed=200_000,
        streaming=Streaming(
            tables=20, backlog=100_000, first_rate=4000, probe_seconds=45, hold_seconds=60
        ),
        buffering=Buffering(seconds=190, buffer_seconds=(10, 30, 60), records_a_second=50),
        scale=Scale(
            files=(8, 2_000),
            scattered=10_000,
            backlog=600_000,
            wide_events=(500, 4_000),
            commits=(720, 5_000),
        ),
        race=Race(
            tables=20,
            rows=10_000,
            common_rate=1000,
            first_rates={"ours": 4000, "spark_merge": 3000, "flink_upsert": 4000},
            most=4000,
            warm_up_seconds=20,
            trial_seconds=45,
            stretch_seconds=45,
            rounds=1,
        ),
        measures=("P1", "P3", "P4"),
    ),
    "tiny": Size(
        rows=50_000,
        changes=2_000,
        batches=3,
        warm_up=2,
        keys=("zipf",),
        events=2_000,
        log_files=200,
        history=3,
        loaded=20_000,
        rounds=1,
        viewed=20_000,
        streaming=Streaming(
            tables=6, backlog=2_000, first_rate=100, probe_seconds=25, hold_seconds=25
        ),
        buffering=Buffering(seconds=5, buffer_seconds=(1, 2, 4), records_a_second=20),
        scale=Scale(
            files=(2, 40), scattered=500, backlog=4_000, wide_events=(100, 500), commits=(20, 200)
        ),
        race=Race(
            tables=3,
            rows=100,
            common_rate=100,
            first_rates={"ours": 100, "spark_merge": 100, "flink_upsert": 100},
            most=100,
            warm_up_seconds=1,
            trial_seconds=12,
            stretch_seconds=12,
            rounds=1,
        ),
        measures=EVERY,
    ),
}
