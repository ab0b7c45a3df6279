"""Random histories on the real lake, disturbed while they run; in the end all agrees with them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdclake import naming
from tests.local.running import RunningLake, lake_in
from tests.model_lake.audit import Change, Place, create_tables, read_changes
from tests.model_lake.compare import Differences, compare_logs, compare_states
from tests.model_lake.disturbances import bring_up, describe, disturb
from tests.model_lake.log import events_by_key, events_query, rows_by_key, state_query
from tests.model_lake.player import Players
from tests.model_lake.report import fail_on, verified
from tests.model_lake.shapes import ALL_SHAPES, PIPELINE, pipeline
from tests.model_lake.waves import Wave, places, waves

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600)]

SEEDS = int(os.environ.get("CDCLAKE_MODEL_SEEDS", "200"))
SEED = int(os.environ.get("CDCLAKE_MODEL_SEED", "0"))
# About as long as a disturbance takes; the first wave also writes while the lake is brought up.
WAVE_S, FIRST_WAVE_S = 20.0, 50.0

log = logging.getLogger("cdclake.model")


class Model:
    """A lake of the model's tables, and what histories have done in it so far."""

    def __init__(self, lake: RunningLake, pipeline_file: Path) -> None:
        self._lake = lake
        self._file = pipeline_file
        self._waves: list[Wave] = []

    def prepare(self) -> None:
        """Tables without rows, and topics of as many partitions as their shapes ask for."""
        with self._lake.connect() as source:
            create_tables(source)
        kafka = AdminClient({"bootstrap.servers": self._lake.run("up", "--no-stream")["kafka"]})
        topics = [
            NewTopic(naming.topic_name(PIPELINE, "public", shape.name), shape.partitions, 1)
            for shape in ALL_SHAPES
        ]
        for created in kafka.create_topics(topics).values():
            created.result()

    def run(self, wave: Wave) -> None:
        """Have the wave's histories written and disturbed; the first also sees the lake begin."""
        is_first = not self._waves
        self._waves.append(wave)
        seconds = FIRST_WAVE_S if is_first else WAVE_S
        players = Players(self._lake.dsn, wave.histories, seconds)
        if is_first:
            bring_up(self._lake, self._file)
        disturb(self._lake, wave.number, self._file)
        players.wait()

    def check(self) -> None:
        """Source, `_current` and the logs agree about everything that was written so far."""
        differences = verified(self._lake.run("verify", "--wait", "300", expect=None))
        assert self._lake.sql("SELECT * FROM cdclake_quarantine") == []
        self._compare(differences)

    def check_states(self) -> None:
        """The states agree as well, and again when they are made from nothing but the logs."""
        self._lake.run("job", "apply_changes")
        applied = rows_by_key(self._lake.sql(state_query()))
        logs = events_by_key(self._lake.sql(events_query()))
        self._compare(compare_states(self._truth(), logs, applied))
        self._lake.run("job", "rebuild_tables")
        rebuilt = rows_by_key(self._lake.sql(state_query()))
        self._compare(
            {
                place: f"applied {applied.get(place)}, rebuilt {rebuilt.get(place)}"
                for place in sorted({*applied, *rebuilt})
                if applied.get(place) != rebuilt.get(place)
            }
        )
        self.check()

    def _truth(self) -> dict[Place, list[Change]]:
        with self._lake.connect() as source:
            return read_changes(source)

    def _compare(self, differences: Differences) -> None:
        truth = self._truth()
        logs = events_by_key(self._lake.sql(events_query()))
        snapshotted = frozenset(places(self._waves[0].histories))
        owners = places(one for wave in self._waves for one in wave.histories)
        fail_on(differences | compare_logs(truth, logs, snapshotted), owners, truth, logs)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    file = tmp_path / "model.yaml"
    file.write_text(pipeline())
    with lake_in(tmp_path) as lake:
        model = Model(lake, file)
        model.prepare()
        yield model


def test_the_lake_agrees_with_random_histories(model: Model) -> None:
    started = time.monotonic()

    def say(what: str) -> None:
        log.info("%5.0f s  %s", time.monotonic() - started, what)

    for wave in waves(SEED, SEEDS):
        seeds = [one.seed for one in wave.histories]
        say(f"seeds {seeds[0]} to {seeds[-1]}: {describe(wave.number)}")
        model.run(wave)
        model.check()
    say("states against their rebuild")
    model.check_states()
    say(f"{SEEDS} histories from seed {SEED} on: no difference")
