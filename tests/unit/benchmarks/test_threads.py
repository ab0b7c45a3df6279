"""CPU seconds are told apart by the names of Java's threads, and none is lost."""

import time

import psutil
import pytest

from benchmarks.metering import metered
from benchmarks.threads import DRIVING, PYTHON, cpu_by_kind, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("C2 CompilerThre", "compiling"),
        ("G1 Conc#0", "collecting"),
        ("Executor task l", "tasks"),
        ("iceberg-worker-", "files"),
        ("broadcast-excha", DRIVING),
    ],
)
def test_a_name_of_fifteen_letters_tells(name, kind):
    assert kind_of(name) == kind


def test_what_is_not_java_counts_as_a_whole():
    own = psutil.Process()
    spent = cpu_by_kind([own])
    assert set(spent) == {PYTHON}
    assert spent[PYTHON] == pytest.approx(sum(own.cpu_times()[:2]), abs=0.1)


def test_a_meter_says_who_spent_it():
    with metered() as meter:
        ends = time.process_time() + 0.2
        while time.process_time() < ends:
            pass
    assert sum(meter.cpu_by_kind.values()) == pytest.approx(meter.cpu_seconds, abs=0.1)
    assert meter.figures()["cpu_by_kind"][PYTHON] >= 0.1
