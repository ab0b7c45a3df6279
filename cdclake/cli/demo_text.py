"""Closing output of `cdclake demo`, at most 80 columns wide."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cdclake.cli.aligned import UNKNOWN, aligned, counted, number

_COUNTS = ("source_rows", "lake_rows", "inserts", "updates", "deletes")
_DIFFERENCES = ("missing", "extra", "different", "unsettled")
_MOST_EVENTS = 4

Line = Mapping[str, Any]
NEXT_STEP = (
    "next, the same with your own database:",
    "  export CDCLAKE_SOURCE_DSN=postgresql://USER:PASSWORD@HOST:PORT/DBNAME",
    "  cdclake init -o my.yaml",
    "  cdclake up my.yaml",
)


def shop_lines(answer: Line) -> Iterator[str]:
    """Yield the end of the shop's demo: tables, figures, one changed row, and the next step."""
    yield from _table_lines(answer["tables"])
    yield from _figure_lines(answer, f" of {number(answer['events_expected'])} expected")
    yield from _changed_lines(answer["changed_row"])
    yield from _end_lines(answer)


def sample_lines(answer: Line) -> Iterator[str]:
    """Yield the end of the demo with a given database."""
    yield from _table_lines(answer["tables"])
    yield f"{answer['statements']} statements changed the source while it was streamed"
    yield from _figure_lines(answer)
    yield from _end_lines(answer)


def _figure_lines(answer: Line, expected: str = "") -> Iterator[str]:
    """Yield events, freshness and the time to the first row; a figure may be unknown."""
    names = ("events_per_s", "freshness_p50_ms", "freshness_p95_ms", "seconds_to_first_row")
    rate, p50, p95, first = (UNKNOWN if answer[name] is None else answer[name] for name in names)
    yield f"{number(answer['events'])}{expected} events in changelogs, {rate} per second"
    yield f"freshness {p50} ms (p50), {p95} ms (p95); first row in the lake after {first} s"


def _table_lines(tables: Sequence[Line]) -> Iterator[str]:
    names = ("table", *(name.replace("_", " ") for name in _COUNTS), "differ")
    rows = [
        [table["table"], *(number(table[name]) for name in _COUNTS), number(_differences(table))]
        for table in tables
    ]
    yield ""
    yield from aligned(names, rows, names[1:])
    for table in tables:
        if _differences(table):
            found = ", ".join(f"{number(table[k])} {k}" for k in _DIFFERENCES if table[k])
            yield f"{table['table']}: {found}"
    yield ""


def _differences(table: Line) -> int:
    return sum(table[kind] for kind in _DIFFERENCES)


def _changed_lines(changed: Line | None) -> Iterator[str]:
    """Yield the events of one row, and the row as lake and source show it."""
    if changed is None:
        return
    [(key, value)] = changed["key"].items()
    events, table = changed["events"], changed["table"]
    shown = events[-_MOST_EVENTS:]
    rows = [
        [f"{table}_changes", event["op"], event["status"], event["total"], _clock(event)]
        for event in shown
    ]
    for place, row in ((f"{table}_current", changed["lake"]), ("PostgreSQL", changed["source"])):
        rows.append(
            [place, "", row["status"], row["total"], ""] if row else [place, "", "", "", ""]
        )
    earlier = len(events) - len(shown)
    more = f" ({counted(earlier, 'earlier event')} not shown)" if earlier else ""
    yield ""
    yield f"one changed row, {key} {value}{more}:"
    names = ("read from", "event", "status", "total", "committed (UTC)")
    yield from aligned(names, rows, ("total",))


def _clock(event: Line) -> str:
    committed = datetime.fromtimestamp(event["committed_us"] / 1e6, UTC)
    return committed.strftime("%H:%M:%S.%f")[:-3]


def _end_lines(answer: Line) -> Iterator[str]:
    equal = "the lake equals the source" if answer["ok"] else "the lake DIFFERS from the source"
    yield ""
    yield f"{equal}; {answer['seconds_total']} s in total"
    yield ""
    yield from _path_lines()
    if "home" in answer:
        table = answer["tables"][-1]["table"]
        yield "next, look into the lake, which is still running:"
        yield f"  export CDCLAKE_HOME={shlex.quote(answer['home'])}"
        yield "  cdclake status"
        yield f"  cdclake sql 'SELECT * FROM {table}_current LIMIT 5'"
        yield "  cdclake down"
    else:
        yield from NEXT_STEP


def _path_lines() -> Iterator[str]:
    """Yield how to run this `cdclake` by its name, if a shell would find none or another one."""
    program = Path(sys.executable).with_name("cdclake")
    found = shutil.which(program.name)
    if program.exists() and (found is None or Path(found).resolve() != program.resolve()):
        yield "first put this cdclake on the PATH:"
        yield f'  export PATH={shlex.quote(str(program.parent))}:"$PATH"'
        yield ""
