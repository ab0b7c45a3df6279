"""Section of docs/reading.md: costs of queries of `<t>_current` as multiples of those of `<t>`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdclake.iceberg.reader_facts import READER_FACTS

COSTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "views.json"
_TAILS = {"empty": "no tail", "small": "small tail", "large": "large tail"}
_TITLES = {name: facts.title for name, facts in READER_FACTS.items()}
_COSTS = """\
## What `<t>_current` costs

Bytes read and CPU seconds of queries of `<t>_current`, as multiples of the same queries of the live
rows of `<t>`. The state has {rows:,} rows, the predicates are on its key, and the tail has no,
{small:,} or {large:,} events ([all figures](../benchmarks/results/views.json), commit `{commit}`).
The figures include reading metadata and looking at the tail. Before the measurement, the machine
with {cores} cores had a load of {load}. Trino's bytes are those of data and delete files,
as Athena counts what it bills, without metadata; its CPU seconds are those of a small server whose
code Java has just compiled, so compare them with each other and not with Athena's time.

| reader | query | `<t>`: MB, CPU s | no tail: MB, CPU | small tail: MB, CPU | large tail: MB, CPU |
|---|---|---|---|---|---|
"""
_AFTER_COSTS = """
A count of `<t>` reads one column of booleans; with a tail, a count of `<t>_current` must compare
keys and positions. Trino and Athena read keys and positions also without a tail: their view cannot
ask first if there is one. Where `<t>` is fresh enough, count there. A tail with a changed key whose
large value was not sent costs more than this: its old key is looked up in the changelog. Most of
what Spark adds to short queries is fixed: it looks at the tail with a job, creates the views and
plans the joins. Without a tail its plan is that of the state.

The target is `{target}`, in bytes and in CPU seconds: for a count without a tail, and for point and
range with any tail. These miss it ([why](performance.md#missed-targets-and-why)):

{missed}
"""


def costs_section() -> str:
    """Return the section, from the committed results."""
    results = json.loads(COSTS.read_text("utf-8"))
    measured = results["measures"]["views"]
    introduction = _COSTS.format(
        rows=measured["rows"],
        small=measured["tail_events"]["small"],
        large=measured["tail_events"]["large"],
        commit=measured["measured"]["commit"],
        load=measured["load_before"],
        cores=results["machine"]["cores"],
    )
    runs = {(run["reader"], run["shape"], run["tail"]): run for run in measured["runs"]}
    asked = dict.fromkeys((run["reader"], run["shape"]) for run in measured["runs"])
    rows = "\n".join(_cost_row(runs, *each) for each in sorted(asked, key=lambda each: each[0]))
    targets = measured["targets"]
    missed = "\n".join(_missed(targets))
    after = _AFTER_COSTS.format(target=targets[0]["target"], missed=missed)
    return introduction + rows + "\n" + after.rstrip()


def _missed(targets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each reader: what misses its target, by what is counted."""
    for reader, of in sorted({(each["reader"], each["of"]) for each in targets}):
        own = [each for each in targets if (each["reader"], each["of"]) == (reader, of)]
        found = [f"{each['shape']}, {_TAILS[each['tail']]}" for each in own if not each["met"]]
        yield f"- {_TITLES[reader]}, {of.replace('_', ' ')}: {'; '.join(found) or 'none'}."


def _cost_row(runs: Mapping[tuple[str, str, str], Any], reader: str, shape: str) -> str:
    state = runs[reader, shape, "empty"]["state"]
    cells = [_TITLES[reader], shape, f"{state['bytes'] / 1e6:.1f}, {state['cpu_seconds']:.2f}"]
    for tail in ("empty", "small", "large"):
        view = runs[reader, shape, tail]["view"]
        times = (view[what] / state[what] for what in ("bytes", "cpu_seconds"))
        cells.append(", ".join(f"{each:,.1f}x" for each in times))
    return f"| {' | '.join(cells)} |"
