"""Write the costs of each way into the lake into docs/ways.md, and what the Iceberg sink lost.

`python -m scripts.ways_page` writes them; a unit test fails if the page is out of date. Computing
costs per gigabyte are estimated from the committed benchmarks and `cdclake.cost.prices`; the counts
of the sink are those of `benchmarks/iceberg_sink.py`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from cdclake.cost.prices import PRICES
from cdclake.naming import OPERATIONS

PROJECT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = PROJECT / "docs" / "ways.md", PROJECT / "benchmarks" / "results"
GIGABYTES = (1, 10, 100)  # of events a day
EVENTS = 1_000_000  # in a gigabyte: an event of 1 KB
_HOURS = 24
_FIRST, _LAST = "<!-- estimated by scripts/ways_page.py -->", "<!-- end -->"
_ESTIMATED = re.compile(f"{re.escape(_FIRST)}.*?{re.escape(_LAST)}", re.DOTALL)

_SINK_FIRST = "<!-- measured by benchmarks/iceberg_sink.py -->"
_SINK = re.compile(f"{re.escape(_SINK_FIRST)}.*?{re.escape(_LAST)}", re.DOTALL)

# The runs of the benchmark, as the page names them.
_SINK_RUNS = {
    "latest_first": "the sink's default, first commit",
    "latest_later": "the sink's default, later commits",
    "earliest": "cdclake's settings, both",
}
# When Connect was killed, by the records of a commit in the control topic.
_PHASES = {
    2: "when it had begun",
    5: "after the task had written its files",
    7: "after the table had its snapshot",
}
_SINK_NOTE = """\
Iceberg's sink {version} on the local lake with {cores} cores, which committed every {seconds} s
([all counts](../benchmarks/results/iceberg-sink.json)). Kafka Connect, with Debezium and the sink,
was killed in commits: {phases}."""

_NOTES = """\
- Jobs have {workers} workers, the minimum for streaming. Decoding and applying a gigabyte took the
  benchmark machine {minutes:.1f} minutes: two workers suffice for all of these volumes.
- A scheduled job runs {runs} times a day. It is assumed to take {start} minutes to start, plus the
  time that the benchmark machine took for the events. The same holds for the apply job behind
  Firehose. Where Firehose delivers every table, the stream job starts on the same schedule, without
  events; its starts are counted.
- Firehose's function takes {micros:.0f} µs of a core per event
  ([measured](../benchmarks/results/firehose.json)), and is called once per MiB.
- The sink is estimated with {mcus} MCU, the minimum; the source of its price used 4."""


DPU, MCU = PRICES["glue.dpu"].usd, PRICES["connect.mcu"].usd
FIREHOSE = PRICES["firehose.direct_put"].usd
LAMBDA, CALLS = PRICES["lambda.gb_second"].usd, PRICES["lambda.call"].usd * 1e6

WORKERS = 2  # G.1X, one DPU each: a job's initial size
START_MINUTES, RUNS_A_DAY = 2, 24  # of a scheduled job; Glue counts from the start on
FUNCTION_GB = 1.0  # memory: stacks/constructs/rows_function.py
CORE_GB = 1.769  # a function has one core at this memory size, by Lambda's documentation
SINK_MCUS = 1  # the smallest connector; the price's source used 4


def always_on(_gigabytes: int) -> float:
    """Return the daily cost of the streaming job, which never has fewer than two workers."""
    return WORKERS * _HOURS * DPU


def scheduled(gigabytes: int) -> float:
    """Return the daily cost of the streaming job run hourly: its starts and its processing."""
    return _starts() + WORKERS * _job_minutes(gigabytes) / 60 * DPU


def _starts() -> float:
    """Return the daily cost of the starts of one job run hourly."""
    return WORKERS * RUNS_A_DAY * START_MINUTES / 60 * DPU


def firehose(gigabytes: int) -> float:
    """Return the daily cost of Firehose, its function, and the apply and stream jobs run hourly."""
    seconds = gigabytes * EVENTS * _function_seconds() * CORE_GB / FUNCTION_GB
    function = seconds * FUNCTION_GB * LAMBDA + gigabytes * 1024 / 1e6 * CALLS
    return gigabytes * FIREHOSE + function + scheduled(gigabytes) + _starts()


def sink(_gigabytes: int) -> float:
    """Return the daily cost of a connector that writes Iceberg."""
    return SINK_MCUS * _HOURS * MCU


def _job_minutes(gigabytes: int) -> float:
    """Estimate the minutes to read and apply on both workers, with the benchmark's cores."""
    decoding = _median("full", "P4", "ours") / 200_000
    applying = _median("full", "P1", "ours") / 20_000
    return gigabytes * EVENTS * (decoding + applying) / 60


def _function_seconds() -> float:
    """Return the seconds of one core per event."""
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
    """Return docs/ways.md with the costs computed from the current figures."""
    text, count = _ESTIMATED.subn(lambda _: "\n".join(_estimate()), PAGE.read_text("utf-8"))
    assert count == 1, f"{PAGE} has {count} estimated parts"
    text, count = _SINK.subn(lambda _: "\n".join(_measured_sink()), text)
    assert count == 1, f"{PAGE} has {count} measured parts"
    return text


def _measured_sink() -> Iterator[str]:
    measured = json.loads((RESULTS / "iceberg-sink.json").read_text())
    runs = [measured["measures"][name] for name in _SINK_RUNS]
    phases = Counter(_PHASES[kill["after"]] for run in runs for kill in run["kills"])
    yield _SINK_FIRST
    yield f"| `<t>_sink` with | {' | '.join(_SINK_RUNS.values())} |"
    yield f"|---|{'---|' * len(runs)}"
    for row, value in _SINK_ROWS.items():
        yield f"| {row} | {' | '.join(str(value(run)) for run in runs)} |"
    yield ""
    yield _SINK_NOTE.format(
        version=measured["versions"]["iceberg-kafka-connect"],
        cores=measured["machine"]["cores"],
        seconds=runs[0]["commit_seconds"],
        phases=", ".join(f"{number} times {phase}" for phase, number in phases.items()),
    )
    yield _LAST


def _lost(run: dict[str, Any]) -> str:
    """Return the events without a row, by operation."""
    return ", ".join(f"{n} {OPERATIONS[op]}" for op, n in run["missing"].items()) or "0"


_SINK_ROWS: dict[str, Callable[[dict[str, Any]], object]] = {
    "kills": lambda run: len(run["kills"]),
    "events in `<t>_changes`": lambda run: sum(run["events"].values()),
    "rows": lambda run: run["sink_rows"],
    "events without a row": _lost,
    "rows of events that Debezium sent again": lambda run: run["resent_rows"],
    "rows that a commit repeated": lambda run: run["committed_twice"],
    "rows with another value": lambda run: run["different_values"],
    "placeholders of unsent values": lambda run: run["placeholders"],
    "rows too large for Kafka, of 1": lambda run: run["oversized_rows"],
}


def _estimate() -> Iterator[str]:
    yield _FIRST
    yield from _table()
    yield ""
    yield _NOTES.format(
        workers=WORKERS,
        minutes=_job_minutes(1),
        runs=RUNS_A_DAY,
        start=START_MINUTES,
        micros=_function_seconds() * 1e6,
        mcus=SINK_MCUS,
    )
    yield ""
    yield "The prices, with sources and dates, are those of [cost](cost.md#prices)."
    yield _LAST


def _table() -> Iterator[str]:
    ways: dict[str, Callable[[int], float]] = {
        "stream, always on": always_on,
        "stream, hourly": scheduled,
        "Firehose, applied hourly": firehose,
        "a sink": sink,
    }
    yield f"| way | {' | '.join(f'{size} GB a day' for size in GIGABYTES)} |"
    yield f"|---|{'---|' * len(GIGABYTES)}"
    for way, cost in ways.items():
        yield f"| {way} | {' | '.join(f'{cost(size):.2f}' for size in GIGABYTES)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
