"""The page `docs/proofs/README.md`: how much of each part passed, when, and on which commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.proofs.parts import Part, Unit, all_parts
from tests.proofs.record import FOLDER, Result, read_results

PAGE = FOLDER / "README.md"
_INTRODUCTION = """\
# Proofs

CI runs the default tests (`make test`). The longer suites are run by hand, in parts that can be
interrupted and continued: `make prove PART=model`; `make prove` lists them. Each run records its
results in a JSON file in this folder, and this page is generated from those files.

**A result holds for the commit that it ran on, and proves nothing of later code.** `make prove`
lists how many units of each part have passed on the present engine: no file has changed since
then in `cdclake/`, `glue_jobs/`, `stacks/`, `lambda/`, `java/` or the lock files. A unit has
passed if all of its tests ran and passed, on a commit without further changes; it no longer
counts once it gets another test.

| part | what it proves | units | passed | oldest pass | newest pass | not passed |
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
    ran = [(unit, results[unit.name]) for unit in part.units if unit.name in results]
    passed = [result for unit, result in ran if result.proves(unit.tests)]
    passed.sort(key=lambda result: result.date)
    ends = (f"{result.date}, `{result.commit}`" for result in passed[:1] + passed[-1:])
    cells = (
        f"[`{part.name}`]({part.name}.json)" if ran else f"`{part.name}`",
        part.proves,
        str(len(part.units)),
        str(len(passed)),
        *(ends if passed else "--"),
        _not_passed(part, ran),
    )
    return f"| {' | '.join(cells)} |\n"


def _not_passed(part: Part, ran: Sequence[tuple[Unit, Result]]) -> str:
    results = [result for _, result in ran]
    counts = {
        "failed": sum(result.has_failed for result in results),
        "with new tests": sum(result.tests < unit.tests for unit, result in ran),
        "with skipped tests": sum(result.skipped > 0 for result in results),
        "on uncommitted files": sum(not result.is_reproducible for result in results),
        "not run": len(part.units) - len(results),
    }
    return ", ".join(f"{count} {reason}" for reason, count in counts.items() if count) or "-"


if __name__ == "__main__":
    write_page()
