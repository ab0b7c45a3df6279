"""The page `docs/proofs/README.md`: how much of each part passed, and on which engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.proofs.parts import Part, Unit, all_parts
from tests.proofs.record import FOLDER, Result, engine_digest, read_results

PAGE = FOLDER / "README.md"
_INTRODUCTION = """\
# Proofs

CI runs the default tests (`make test`). The longer suites are run by hand, in parts that can be
interrupted and continued: `make prove PART=model`; `make prove` lists them. Each run records its
results in a JSON file in this folder, and this page is generated from those files.

A result holds for the commit that it ran on. It is a result of the present engine if no file has
changed since then in `cdclake/`, `glue_jobs/`, `stacks/`, `lambda/`, `java/` or the lock files.
**What passed on an earlier engine is not proved for the present code**: those units are due again.
A unit has passed if all of its tests ran and passed, on a commit without further changes; it no
longer counts once it gets another test.

| part | what it proves | units | passed on the present engine | only on an earlier one \
| last run | oldest pass | state |
|---|---|---|---|---|---|---|---|
"""


def write_page() -> None:
    """Write the page from the records."""
    PAGE.write_text(render_page())


def render_page() -> str:
    """Render the page from the records and the engine's files."""
    engine = engine_digest()
    rows = [render_part(part, read_results(part.name), engine) for part in all_parts()]
    return _INTRODUCTION + "".join(rows)


def render_part(part: Part, results: Mapping[str, Result], engine: str) -> str:
    """Render the part's row of the table."""
    ran = [(unit, results[unit.name]) for unit in part.units if unit.name in results]
    passed = [result for unit, result in ran if result.proves(unit.tests)]
    present = sum(result.engine == engine for result in passed)
    oldest = min(passed, key=lambda result: result.date, default=None)
    cells = (
        f"[`{part.name}`]({part.name}.json)" if ran else f"`{part.name}`",
        part.proves,
        str(len(part.units)),
        str(present),
        str(len(passed) - present),
        max((result.date for _, result in ran), default="never"),
        f"{oldest.date}, `{oldest.commit}`" if oldest else "-",
        _state(part, ran, present),
    )
    return f"| {' | '.join(cells)} |\n"


def _state(part: Part, ran: Sequence[tuple[Unit, Result]], present: int) -> str:
    results = [result for _, result in ran]
    counts = {
        "with new tests": sum(result.tests < unit.tests for unit, result in ran),
        "with skipped tests": sum(result.skipped > 0 for result in results),
        "on uncommitted files": sum(not result.is_reproducible for result in results),
        "not run": len(part.units) - len(results),
    }
    if failed := sum(result.has_failed for result in results):
        return f"**{failed} failed**"
    if present == len(part.units):
        return "complete"
    reasons = [f"{count} {reason}" for reason, count in counts.items() if count]
    return ", ".join(reasons) or "due again"


if __name__ == "__main__":
    write_page()
