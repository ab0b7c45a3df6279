"""Random histories on the real lake, disturbed while they run; in the end all agrees with them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.local.running import lake_in
from tests.model_lake.disturbances import describe, disturb
from tests.model_lake.lake_model import Model
from tests.model_lake.shapes import pipeline
from tests.model_lake.waves import waves

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600)]

SEEDS = int(os.environ.get("CDCLAKE_MODEL_SEEDS", "200"))
SEED = int(os.environ.get("CDCLAKE_MODEL_SEED", "0"))

log = logging.getLogger("cdclake.model")


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
        model.run(wave, partial(disturb, model.lake, wave.number, model.file))
        model.check()
    say("states against their rebuild")
    model.check_states()
    say(f"{SEEDS} histories from seed {SEED} on: no difference")
