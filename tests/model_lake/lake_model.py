"""The lake of the model's tables: histories written into its source, and compared with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdclake import naming
from tests.local.running import RunningLake
from tests.model_lake.audit import Change, Place, create_tables, read_changes
from tests.model_lake.compare import Differences, compare_logs, compare_states
from tests.model_lake.disturbances import bring_up
from tests.model_lake.log import events_by_key, events_query, rows_by_key, state_query
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
        """Compare source, `_current` and the changelogs about everything written so far."""
        differences = verified(self.lake.run("verify", "--wait", "300", expect=None))
        assert self.lake.sql("SELECT count(*) FROM cdclake_quarantine") == [[quarantined]]
        self._compare(differences)

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

    def _compare(self, differences: Differences) -> None:
        truth = self._truth()
        logs = events_by_key(self.lake.sql(events_query()))
        snapshotted = frozenset(places(self._waves[0].histories))
        owners = places(one for wave in self._waves for one in wave.histories)
        fail_on(differences | compare_logs(truth, logs, snapshotted), owners, truth, logs)
