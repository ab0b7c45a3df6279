"""Bar charts as SVG text, readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from benchmarks.results import Figure

_WIDTH, _LABEL, _ROOM, _BAR, _STEP = 720, 190, 110, 18, 28
_STYLE = (
    "text{font:13px sans-serif;fill:#57606a}rect{fill:#8c959f}.ours rect{fill:#1a7f64}"
    ".ours text{font-weight:bold}"
)


def bar_chart(title: str, bars: Mapping[str, Figure], *, unit: str, ours: str) -> str:
    """One bar a figure, longest for the greatest; a word stands where there is no figure.

    Bars whose first word is `ours` are marked.
    """
    greatest = max((bar for bar in bars.values() if not isinstance(bar, str)), default=1.0)
    height = _STEP * (len(bars) + 1)
    rows = [_row(n, name, bar, greatest, unit, ours) for n, (name, bar) in enumerate(bars.items())]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<text x="0" y="{_BAR - 4}">{escape(title)}</text>\n' + "".join(rows) + "</svg>\n"
    )


def _row(number: int, name: str, bar: Figure, greatest: float, unit: str, ours: str) -> str:
    y = _STEP * (number + 1)
    length, said = (0.0, "wrong") if isinstance(bar, str) else (bar, f"{bar:.2f} {unit}")
    width = (_WIDTH - _LABEL - _ROOM) * length / greatest
    mark = ' class="ours"' if name.partition(" ")[0] == ours else ""
    return (
        f'<g{mark}><text x="0" y="{y + _BAR - 4}">{escape(name)}</text>'
        f'<rect x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_BAR}"/>'
        f'<text x="{_LABEL + width + 6:.1f}" y="{y + _BAR - 4}">{escape(said)}</text></g>\n'
    )
