"""The lake of the model's tables: histories written into its source, and compared with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdclake import naming
from tests.local.running import RunningLake
from tests.model_lake.audit import Change, Place, create_tables, read_changes
from tests.model_lake.compare import (
    Differences,
    compare_earlier,
    compare_logs,
    compare_states,
)
from tests.model_lake.disturbances import bring_up
from tests.model_lake.history import History
from tests.model_lake.log import (
    Event,
    earlier_query,
    events_by_key,
    events_query,
    rows_by_key,
    state_query,
)
from tests.model_lake.player import Players
from tests.model_lake.report import fail_on, verified
from tests.model_lake.shapes import ALL_SHAPES, PIPELINE
from tests.model_lake.waves import Wave, places

# About as long as a disturbance takes; the first wave also writes while the lake is brought up.
WAVE_S, FIRST_WAVE_S = 20.0, 50.0


class Model:
    """A lake of the model's tables, and what histories have done in it so far."""

    def __init__(self, lake: RunningLake, pipeline_file: Path) -> None:
        self.lake = lake
        self.file = pipeline_file
        self._waves: list[Wave] = []
        self._complete_since: int | None = None  # the changelogs, in microseconds

    def prepare(self) -> None:
        """Tables without rows, and topics of as many partitions as their shapes ask for."""
        with self.lake.connect() as source:
            create_tables(source)
        kafka = AdminClient(self.lake.endpoints.kafka.settings)
        topics = [
            NewTopic(naming.topic_name(PIPELINE, "public", shape.name), shape.partitions, 1)
            for shape in ALL_SHAPES
        ]
        for created in kafka.create_topics(topics).values():
            created.result()

    def run(
        self,
        wave: Wave,
        disturb: Callable[[], None],
        *,
        seconds: float = WAVE_S,
        database_may_die: bool = False,
    ) -> None:
        """Write the wave's histories, disturbed; during the first one the lake begins to stream."""
        is_first = not self._waves
        self._waves.append(wave)
        seconds = FIRST_WAVE_S if is_first else seconds
        # PostgreSQL cannot decode what is truncated while the slot is being created
        # (tests/local/test_slot_creation.py).
        players = Players(
            self.lake.dsn,
            wave.histories,
            seconds,
            database_may_die=database_may_die,
            truncates_later=is_first,
        )
        if is_first:
            try:
                bring_up(self.lake, self.file)
            finally:
                players.allow_truncates()
        disturb()
        players.wait()

    def check(self, *, quarantined: int = 0) -> None:
        """Compare source, `_current` and the changelogs about everything written so far.

        As of two commit times, compare the rows of then as well.
        """
        differences = verified(self.lake.run("verify", "--wait", "300", expect=None))
        assert self.lake.sql("SELECT count(*) FROM cdclake_quarantine") == [[quarantined]]
        truth, logs = self._compare(differences)
        self._compare_earlier(truth, logs)

    def check_states(self) -> None:
        """The states agree as well, and again when they are made from nothing but the logs."""
        self.lake.run("job", "apply_changes")
        applied = rows_by_key(self.lake.sql(state_query()))
        logs = events_by_key(self.lake.sql(events_query()))
        self._compare(compare_states(self._truth(), logs, applied))
        self.lake.run("job", "rebuild_tables")
        rebuilt = rows_by_key(self.lake.sql(state_query()))
        self._compare(
            {
                place: f"applied {applied.get(place)}, rebuilt {rebuilt.get(place)}"
                for place in sorted({*applied, *rebuilt})
                if applied.get(place) != rebuilt.get(place)
            }
        )
        self.check()

    def events(self) -> int:
        """Count the events in all changelogs."""
        return len(self.lake.sql(events_query()))

    def _truth(self) -> dict[Place, list[Change]]:
        with self.lake.connect() as source:
            return read_changes(source)

    def _compare(
        self, differences: Differences
    ) -> tuple[dict[Place, list[Change]], dict[Place, list[Event]]]:
        truth = self._truth()
        logs = events_by_key(self.lake.sql(events_query()))
        snapshotted = frozenset(places(self._waves[0].histories))
        differences = differences | compare_logs(truth, logs, snapshotted)
        fail_on(differences, self._owners(), truth, logs)
        return truth, logs

    def _compare_earlier(
        self, truth: Mapping[Place, Sequence[Change]], logs: Mapping[Place, Sequence[Event]]
    ) -> None:
        """Compare the rows as of random commit times since all tables had been read."""
        events = [event for known in logs.values() for event in known]
        if self._complete_since is None:
            self._complete_since = max(e.committed_at for e in events if e.is_read)
        times = sorted({e.committed_at for e in events if e.committed_at >= self._complete_since})
        random = Random(self._waves[-1].number)
        for micros in random.sample(times, min(2, len(times))):
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
            answer = self.lake.run("sql", earlier_query(), "--as-of", moment.isoformat())
            found = compare_earlier(truth, logs, answer["rows"], micros)
            fail_on(found, self._owners(), truth, logs)

    def _owners(self) -> dict[Place, History]:
        return places(one for wave in self._waves for one in wave.histories)
