"""The page `docs/proofs/README.md`: when each part was last proved, and on which commit."""

from __future__ import annotations

from collections.abc import Mapping

from tests.proofs.parts import Part, all_parts
from tests.proofs.record import FOLDER, Result, read_results

PAGE = FOLDER / "README.md"
_INTRODUCTION = """\
# Proofs

CI runs the default tests (`make test`). The longer suites are run by hand, in parts that can be
interrupted and continued: `make prove PART=model`; `make prove` lists them. Each run records its
results in a JSON file in this folder, and this page is generated from those files. A result holds
for its commit; `make prove` also counts those on an engine that has changed since.

| part | what it proves | units proved | tests | last run | commit | state |
|---|---|---|---|---|---|---|
"""


def write_page() -> None:
    """Write the page from the records."""
    PAGE.write_text(render_page())


def render_page() -> str:
    """Render the page from the records."""
    rows = [_row(part, read_results(part.name)) for part in all_parts()]
    return _INTRODUCTION + "".join(rows)


def _row(part: Part, results: Mapping[str, Result]) -> str:
    ours = [results[unit.name] for unit in part.units if unit.name in results]
    proved = [result for result in ours if result.succeeded]
    dates = sorted({result.date for result in ours})
    commits = sorted({result.commit for result in ours})
    cells = (
        f"[`{part.name}`]({part.name}.json)" if ours else f"`{part.name}`",
        part.proves,
        f"{len(proved)} of {len(part.units)}",
        str(sum(result.passed for result in proved)),
        dates[-1] if dates else "never",
        f"`{commits[0]}`" if len(commits) == 1 else f"{len(commits)} commits" if commits else "-",
        _state(part, ours),
    )
    return f"| {' | '.join(cells)} |\n"


def _state(part: Part, results: list[Result]) -> str:
    failed = sum(not result.succeeded for result in results)
    if failed:
        return f"**{failed} failed**"
    if len(results) < len(part.units):
        return "incomplete" if results else "never run"
    return "complete"


if __name__ == "__main__":
    write_page()
