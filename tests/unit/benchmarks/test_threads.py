"""CPU seconds are told apart by the names of Java's threads, and none is lost."""

import subprocess
import sys
import time

import psutil
import pytest

from benchmarks.metering import metered
from benchmarks.threads import DRIVING, ENDED, PYTHON, Thread, cpu_by_kind, cpu_by_thread, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("C2 CompilerThre", "compiling"),
        ("G1 Conc#0", "collecting"),
        ("Executor task l", "tasks"),
        ("Source: inserts", "tasks"),
        ("IcebergStreamWr", "tasks"),
        ("iceberg-worker-", "files"),
        ("broadcast-excha", DRIVING),
    ],
)
def test_a_name_of_fifteen_letters_tells(name, kind):
    assert kind_of(name) == kind


def test_what_is_not_java_counts_as_a_whole():
    own = psutil.Process()
    spent = {thread.kind: seconds for thread, seconds in cpu_by_thread([own]).items()}
    assert spent.keys() == {PYTHON}
    assert spent[PYTHON] == pytest.approx(sum(own.cpu_times()[:2]), abs=0.1)


def test_threads_that_end_between_two_looks_take_nothing_from_their_kind():
    rest = Thread(1, 0, 0, DRIVING)
    idle, busy, follower = (Thread(1, 7, begun, "tasks") for begun in (1, 2, 3))
    before = {rest: 5.0, idle: 30.0, busy: 2.0}
    after = {rest: 5.0 + 30.0 + 1.0, busy: 6.0, follower: 0.5}  # the idle one spent another second
    assert cpu_by_kind(before, after) == {DRIVING: 1.0, "tasks": 4.5}


def test_a_meter_says_who_spent_it():
    with metered() as meter:
        ends = time.process_time() + 0.2
        while time.process_time() < ends:
            pass
    assert sum(meter.cpu_by_kind.values()) == pytest.approx(meter.cpu_seconds, abs=0.1)
    assert meter.figures()["cpu_by_kind"][PYTHON] >= 0.1


_ORPHAN = "import os\nfirst = os.getppid()\nwhile os.getppid() == first: pass"
_LEAVES_AN_ORPHAN = f"""
import subprocess, sys, psutil
child = psutil.Popen([sys.executable, "-c", {_ORPHAN!r}])
while child.cpu_times().user < 0.6: pass
"""


@pytest.mark.parametrize(
    "program",
    ["import time\nwhile time.process_time() < 0.6: pass", _LEAVES_AN_ORPHAN],
    ids=["waited_for", "orphaned"],
)
def test_what_a_program_spent_that_has_ended_is_not_lost(program):
    with metered() as meter:
        subprocess.run([sys.executable, "-c", program], check=True)
    assert meter.cpu_by_kind[ENDED] >= 0.3
    assert meter.cpu_seconds >= meter.cpu_by_kind[ENDED]


def test_a_program_that_ran_before_counts_only_from_then_on():
    parent, child = Thread(1, 0, 0, PYTHON), Thread(2, 7, 1, "tasks")
    before = {parent: 1.0, child: 30.0}
    assert cpu_by_kind(before, {parent: 1.5}, ended=34.0) == {PYTHON: 0.5, ENDED: 4.0}
