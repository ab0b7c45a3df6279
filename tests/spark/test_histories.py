"""Random histories of a database by the engine: state, log, `_current` and rebuild agree with it.

Those without truncates run in one table at once, each with its own keys and Kafka partitions.
"""

import uuid
from random import Random

import pytest

from tests.model.histories import history
from tests.model.scenarios import Case
from tests.spark.packed import Packed, written

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOGETHER, STEPS = 12, 40
ALONE, STEPS_ALONE = 5, 80


def histories_together() -> list[Case]:
    """Histories whose events touch only their own keys."""
    return [
        history(Random(seed), f"history {seed}", truncates=False, steps=STEPS)
        for seed in range(TOGETHER)
    ]


@pytest.mark.parametrize("is_partitioned", [False, True], ids=["whole", "parts"])
@pytest.mark.parametrize(
    "histories",
    [histories_together(), [history(Random(ALONE), "with truncates", steps=STEPS_ALONE)]],
    ids=["together", "with-truncates"],
)
def test_the_lake_ends_in_the_databases_rows(
    spark, histories: list[Case], is_partitioned: bool
) -> None:
    name = f"t_{uuid.uuid4().hex[:8]}"
    packed = Packed(spark, "plain", name, is_partitioned=is_partitioned)
    seen = packed.run([written(case, number) for number, case in enumerate(histories)], replayed=3)
    for number, case in enumerate(histories):
        found = seen[number]
        assert found.state == case.state, case.id
        assert found.current == found.current_of_log == found.rebuilt == case.state, case.id
        assert sorted(found.log.split()) == sorted(case.log.split()), case.id
        assert (found.missing, found.refused) == ({}, []), case.id
