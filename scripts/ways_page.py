"""Write into docs/ways.md what each of the ways into the lake costs.

`python -m scripts.ways_page` writes it; a unit test fails as long as it is not the newest. What a
gigabyte costs in computing is reckoned from the committed benchmarks, with the prices below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PROJECT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = PROJECT / "docs" / "ways.md", PROJECT / "benchmarks" / "results"
GIGABYTES = (1, 10, 100)  # of events a day
EVENTS = 1_000_000  # in a gigabyte: an event of 1 KB
_HOURS = 24
_FIRST, _LAST = "<!-- reckoned by scripts/ways_page.py -->", "<!-- until here -->"
_RECKONED = re.compile(f"{re.escape(_FIRST)}.*{re.escape(_LAST)}", re.DOTALL)

_SAID = """\
- Jobs have {workers} workers, the least that streams. To decode and apply a gigabyte took the
  machine of the benchmarks {minutes:.1f} minutes: two would do for all of these.
- A scheduled job runs {runs} times a day. It takes {start} minutes to start, which is a guess, and
  as long as the events took that machine. So does the apply job behind Firehose.
- Firehose's function takes {micros:.0f} µs of a core for an event
  ([measured](../benchmarks/results/firehose.json)), and is called for each MiB.
- The sink is reckoned with {mcus} MCU, the least; the page of its price took 4."""


@dataclass(frozen=True, slots=True)
class Price:
    """What one of something costs in us-east-1, in US dollars before tax, and who said so when."""

    of: str
    dollars: float
    said: str


DPU = Price(
    "Glue, a DPU and hour",
    0.44,
    "aws.amazon.com/glue/pricing, as copied on 2026-10-07 (api-evangelist/amazon-glue-databrew)",
)
MCU = Price(
    "MSK Connect, an MCU and hour",
    0.11,
    "dbaglobe.com, 2026-03-20: 316 dollars for a month of 4",
)
FIREHOSE = Price("Firehose, a GB", 0.029, "dbaglobe.com, 2026-03-20; see below")
LAMBDA = Price(
    "Lambda on arm64, a second of one GB", 0.0000133334, "wring.co, 2026-03-08, of AWS's list"
)
CALLS = Price("Lambda, a million calls", 0.20, "wring.co, 2026-03-08, of AWS's list")

WORKERS = 2  # G.1X, a DPU each: what a job begins with
START_MINUTES, RUNS_A_DAY = 2, 24  # of a scheduled job; Glue counts from the start on
FUNCTION_GB = 1.0  # of memory: stacks/constructs/rows_function.py
CORE_GB = 1.769  # with so much memory a function has one core, by Lambda's documentation
SINK_MCUS = 1  # the smallest connector; the price's source reckons with 4


def always_on(_gigabytes: int) -> float:
    """A day of the streaming job: its workers do not become fewer than two."""
    return WORKERS * _HOURS * DPU.dollars


def scheduled(gigabytes: int) -> float:
    """A day of the streaming job that runs hourly: to start, and to take what has come."""
    minutes = RUNS_A_DAY * START_MINUTES + _job_minutes(gigabytes)
    return WORKERS * minutes / 60 * DPU.dollars


def firehose(gigabytes: int) -> float:
    """A day of Firehose and its function, and of the apply job hourly."""
    seconds = gigabytes * EVENTS * _function_seconds() * CORE_GB / FUNCTION_GB
    function = seconds * FUNCTION_GB * LAMBDA.dollars + gigabytes * 1024 / 1e6 * CALLS.dollars
    return gigabytes * FIREHOSE.dollars + function + scheduled(gigabytes)


def sink(_gigabytes: int) -> float:
    """A day of a connector that writes Iceberg."""
    return SINK_MCUS * _HOURS * MCU.dollars


def _job_minutes(gigabytes: int) -> float:
    """Of both workers, if they had the cores of the benchmark's machine: reading and applying."""
    decoding = _median("full", "P4", "ours") / 200_000
    applying = _median("full", "P1", "ours") / 20_000
    return gigabytes * EVENTS * (decoding + applying) / 60


def _function_seconds() -> float:
    """Of one core, for an event."""
    return _median("firehose", "firehose", "firehose_changes", of="cpu_seconds") / 20_000


def _median(file: str, measure: str, contender: str, of: str = "seconds") -> float:
    measured = json.loads((RESULTS / f"{file}.json").read_text())["measures"][measure]
    return median(
        float(figures[of])
        for run in measured["runs"]
        if run["contender"] == contender
        for figures in run["figures"]
    )


def page() -> str:
    """docs/ways.md with what the ways cost by today's figures."""
    text, count = _RECKONED.subn(lambda _: "\n".join(_reckoned()), PAGE.read_text("utf-8"))
    assert count == 1, f"{PAGE} has {count} parts that are reckoned"
    return text


def _reckoned() -> Iterator[str]:
    yield _FIRST
    yield from _table()
    yield ""
    yield _SAID.format(
        workers=WORKERS,
        minutes=_job_minutes(1),
        runs=RUNS_A_DAY,
        start=START_MINUTES,
        micros=_function_seconds() * 1e6,
        mcus=SINK_MCUS,
    )
    yield ""
    yield from _prices()
    yield _LAST


def _table() -> Iterator[str]:
    ways: dict[str, Callable[[int], float]] = {
        "stream, always on": always_on,
        "stream, hourly": scheduled,
        "Firehose, and applied hourly": firehose,
        "a sink": sink,
    }
    yield f"| way | {' | '.join(f'{size} GB a day' for size in GIGABYTES)} |"
    yield f"|---|{'---|' * len(GIGABYTES)}"
    for way, cost in ways.items():
        yield f"| {way} | {' | '.join(f'{cost(size):.2f}' for size in GIGABYTES)} |"


def _prices() -> Iterator[str]:
    yield "| of | dollars | where, and when that was read |"
    yield "|---|---|---|"
    for price in (DPU, MCU, FIREHOSE, LAMBDA, CALLS):
        yield f"| {price.of} | {f'{price.dollars:.10f}'.rstrip('0')} | {price.said} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
