"""The page `docs/proofs/README.md`: when each part was last proved, and on which commit."""

from __future__ import annotations

from collections.abc import Mapping

from tests.proofs.parts import Part, Unit, all_parts
from tests.proofs.record import FOLDER, Result, read_results

PAGE = FOLDER / "README.md"
_INTRODUCTION = """\
# Proofs

CI runs the default tests (`make test`). The longer suites are run by hand, in parts that can be
interrupted and continued: `make prove PART=model`; `make prove` lists them. Each run records its
results in a JSON file in this folder, and this page is generated from those files. A result holds
for its commit, and proves its unit until the unit gets another test. `make prove` counts only
results on the present engine.

| part | what it proves | units proved | tests | last run | commit | state |
|---|---|---|---|---|---|---|
"""


def write_page() -> None:
    """Write the page from the records."""
    PAGE.write_text(render_page())


def render_page() -> str:
    """Render the page from the records."""
    rows = [render_part(part, read_results(part.name)) for part in all_parts()]
    return _INTRODUCTION + "".join(rows)


def render_part(part: Part, results: Mapping[str, Result]) -> str:
    """Render the part's row of the table."""
    ours = [results[unit.name] for unit in part.units if unit.name in results]
    proved = [unit for unit in part.units if _is_proved(unit, results)]
    dates = sorted({result.date for result in ours})
    commits = sorted({result.commit for result in ours})
    cells = (
        f"[`{part.name}`]({part.name}.json)" if ours else f"`{part.name}`",
        part.proves,
        f"{len(proved)} of {len(part.units)}",
        str(sum(results[unit.name].passed for unit in proved)),
        dates[-1] if dates else "never",
        f"`{commits[0]}`" if len(commits) == 1 else f"{len(commits)} commits" if commits else "-",
        _state(part, ours, len(proved)),
    )
    return f"| {' | '.join(cells)} |\n"


def _is_proved(unit: Unit, results: Mapping[str, Result]) -> bool:
    return unit.name in results and results[unit.name].proves(unit.tests)


def _state(part: Part, results: list[Result], proved: int) -> str:
    failed = sum(not result.succeeded for result in results)
    if failed:
        return f"**{failed} failed**"
    if not results:
        return "never run"
    grown = len(results) - proved
    more = f", {grown} with new tests" if grown else ""
    return f"incomplete{more}" if proved < len(part.units) else "complete"


if __name__ == "__main__":
    write_page()
