"""Write the figures of Firehose's buffers into docs/firehose.md.

`python -m scripts.buffering_page` writes them; a unit test fails if the page is out of date. They
are those of `benchmarks/buffering.py` and `cdclake.cost.prices`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdclake.cost.prices import PRICES

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "firehose.md"
RESULTS = PROJECT / "benchmarks" / "results" / "buffering.json"
RATES_KB_S = (10, 100, 1000)  # of rows, beyond the measured rate
_DAY_S, _MIB = 86_400, 1 << 20
_REQUEST_METERS = {"s3_write": "s3.write", "s3_read": "s3.read", "glue": "glue.request"}
_FIRST, _LAST = "<!-- measured by benchmarks/buffering.py -->", "<!-- end -->"
_MEASURED = re.compile(f"{re.escape(_FIRST)}.*?{re.escape(_LAST)}", re.DOTALL)

_INTRODUCTION = """\
Nine put tables got the same {records} records a second, side by side for {minutes:.0f} minutes
([all counts](../benchmarks/results/buffering.json), commit `{commit}`): {row_bytes} bytes a row,
{kb_s:.1f} KB a second each, and no buffer before the function. In the end each table held every
record once. Requests are those of the local Firehose, which appends by pyiceberg; AWS's own may
make others. They are priced without the million requests to Glue that are free each month.
Firehose itself, at {firehose:.3f} dollars a GB, costs {usd:.2f} dollars a day at this rate with
any buffer."""

_RATES = """\
Computed for other rates, from the bytes and requests above: seconds between two commits, MB of a
file, and dollars a day for requests."""

_GUIDANCE = """\
What follows from it:

- **Choose the time by the age that readers accept.** A record is readable after half of it on
  average, after all of it at worst, plus the buffer of the function (`function: seconds`) and, for
  states, `schedules.apply`. At this rate, 900 s instead of 300 s saves {long_usd:.3f} dollars a day
  for each table, 300 s instead of 60 s saves {short_usd:.3f}.
- **Leave the size at 64 MiB or more.** The size decides from `mib / seconds` on: 64 MiB in 300 s
  are {kb_s:,.0f} KB a second. Below that rate, 64 and 128 MiB are the same. 1 MiB made
  {files:,.0f} files of {mb:.2f} MB a day here, whatever the time, and its commits follow the load:
  at 1,000 KB/s one would come every {one_s:.0f} s.
- **Small files are temporary.** Maintenance compacts them; more commits are more work for it, and
  more files and metadata that each query reads until then.
- The default, 300 s and 64 MiB, is right for tables that are queried by people. Take 60 s where a
  program waits for the rows, 900 s and 128 MiB for archives."""

Run = Mapping[str, Any]


def page() -> str:
    """Return docs/firehose.md with the figures of the current results."""
    measured = json.loads(RESULTS.read_text("utf-8"))["measures"]["buffering"]
    text, count = _MEASURED.subn(lambda _: "\n".join(_lines(measured)), PAGE.read_text("utf-8"))
    assert count == 1, f"{PAGE} has {count} measured parts"
    return text


def interval_s(run: Run, row_bytes_s: float) -> float:
    """Return the seconds between two commits at a rate: the limit that is reached first."""
    return float(min(run["buffer_seconds"], run["buffer_mib"] * _MIB / row_bytes_s))


def commit_usd(run: Run) -> float:
    """Return the price of the requests of one commit."""
    usd = sum(run["requests"][kind] * PRICES[meter].usd for kind, meter in _REQUEST_METERS.items())
    return float(usd / run["commits"])


def _lines(measured: Mapping[str, Any]) -> Iterator[str]:
    rate = measured["records_a_second"] * measured["row_bytes"]
    firehose = PRICES["firehose.direct_put"].usd
    yield _FIRST
    yield _INTRODUCTION.format(
        records=measured["records_a_second"],
        minutes=measured["seconds"] / 60,
        row_bytes=measured["row_bytes"],
        kb_s=rate / 1000,
        commit=measured["measured"]["commit"],
        firehose=firehose,
        usd=rate * _DAY_S / 1e9 * firehose,
    )
    yield ""
    yield (
        "| buffer | s between commits | files a day | MB a file | S3 writes, reads a day |"
        " Glue requests a day | readable after, s: p50, p95 | dollars a day for requests |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    yield from map(_measured_row, measured["runs"])
    yield ""
    yield _RATES
    yield ""
    yield f"| buffer | {' | '.join(f'{kb:,} KB/s' for kb in RATES_KB_S)} |"
    yield f"|---|{'---|' * len(RATES_KB_S)}"
    for run in measured["runs"]:
        cells = (_computed(run, kb * 1000, measured["row_bytes"]) for kb in RATES_KB_S)
        yield f"| {_buffer(run)} | {' | '.join(cells)} |"
    yield ""
    yield _guidance({(run["buffer_seconds"], run["buffer_mib"]): run for run in measured["runs"]})
    yield _LAST


def _guidance(runs: Mapping[tuple[int, int], Run]) -> str:
    usd = {seconds: _day_usd(runs[seconds, 64]) for seconds in (60, 300, 900)}
    small = runs[300, 1]
    return _GUIDANCE.format(
        long_usd=usd[300] - usd[900],
        short_usd=usd[60] - usd[300],
        kb_s=64 * _MIB / 300 / 1000,
        files=small["files"] / small["commits"] * _DAY_S / small["seconds_a_commit"],
        mb=small["mean_file_bytes"] / 1e6,
        one_s=_MIB / 1e6,
    )


def _day_usd(run: Run) -> float:
    return _DAY_S / float(run["seconds_a_commit"]) * commit_usd(run)


def _measured_row(run: Run) -> str:
    a_day = _DAY_S / run["seconds_a_commit"]
    requests = {kind: count / run["commits"] * a_day for kind, count in run["requests"].items()}
    cells = (
        _buffer(run),
        f"{run['seconds_a_commit']:.0f}",
        f"{run['files'] / run['commits'] * a_day:,.0f}",
        f"{run['mean_file_bytes'] / 1e6:.2f}",
        f"{requests['s3_write']:,.0f}, {requests['s3_read']:,.0f}",
        f"{requests['glue']:,.0f}",
        f"{run['freshness_p50_s']:.0f}, {run['freshness_p95_s']:.0f}",
        f"{_day_usd(run):.3f}",
    )
    return f"| {' | '.join(cells)} |"


def _computed(run: Run, row_bytes_s: float, row_bytes: int) -> str:
    seconds = interval_s(run, row_bytes_s)
    stored = run["mean_file_bytes"] * run["files"] / run["rows"]  # of a row
    megabytes = seconds * row_bytes_s / row_bytes * stored / 1e6
    return f"{seconds:,.0f} s, {megabytes:.1f} MB, {_DAY_S / seconds * commit_usd(run):.3f}"


def _buffer(run: Run) -> str:
    return f"{run['buffer_seconds']} s, {run['buffer_mib']} MiB"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
