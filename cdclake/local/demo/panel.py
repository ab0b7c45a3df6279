"""The demo's terminal panel: steps above, pipeline stages below, redrawn in place."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cdclake.local.demo.pipeline_stages import Look
from cdclake.local.demo.tasks import Stopwatch

_REDRAWS_PER_S = 4


class LivePanel:
    """Panel that is redrawn in place; its last state stays above the closing table."""

    def __init__(self, watch: Stopwatch, console: Console, title: str) -> None:
        self._watch, self._title = watch, title
        self._details: dict[str, str] = {}
        self._spinners: dict[str, Spinner] = {}
        self._look: Look | None = None
        self._live = Live(
            get_renderable=self._draw,
            console=console,
            refresh_per_second=_REDRAWS_PER_S,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def open(self) -> AbstractContextManager[object]:
        """Return the context manager that displays the panel."""
        return self._live

    def begin(self, step: str) -> None:
        """Add a line with a spinner."""
        self._spinners[step] = Spinner("dots", style="cyan")
        self._watch.begin(step)

    def end(self, step: str, detail: str = "") -> None:
        """Tick the line off and show its detail."""
        self._watch.end(step)
        self._details[step] = detail

    def look(self, look: Look) -> None:
        """Show this look at the pipeline from now on."""
        self._look = look

    def _draw(self) -> RenderableType:
        parts: list[RenderableType] = [self._steps()]
        if self._look is not None:
            parts += [_hops(self._look), _flow(self._look)]
        clock = f"{self._watch.elapsed:.0f} s"
        return Panel(Group(*parts), title=self._title, subtitle=clock, border_style="dim")

    def _steps(self) -> Table:
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(width=2)
        grid.add_column(min_width=28)
        grid.add_column(justify="right", min_width=7)
        grid.add_column(style="dim", overflow="ellipsis", no_wrap=True, ratio=1)
        for step, (begun, ended) in list(self._watch.steps.items()):
            mark = self._spinners[step] if ended is None else Text("✓", style="green")
            seconds = (self._watch.elapsed if ended is None else ended) - begun
            grid.add_row(mark, step, f"{seconds:.1f} s", self._details.get(step, ""))
        return grid


def _hops(look: Look) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2))
    table.add_column("table")
    for name in ("rows changed", "in Kafka", "in the lake", "lag"):
        table.add_column(name, justify="right")
    for hop in look.hops:
        lag = Text(f"{hop.lag:,}", style="yellow" if hop.lag else "green")
        table.add_row(hop.table, f"{hop.written:,}", f"{hop.in_kafka:,}", f"{hop.in_lake:,}", lag)
    return table


def _flow(look: Look) -> Text:
    """Render the newest batch and the lake's freshness after it."""
    text = Text()
    text.append(f"PostgreSQL {look.rate:,.0f} rows/s", style="bold")
    text.append(f" in {look.transactions:,} transactions")
    text.append("  →  ").append(f"lag {look.lag:,}", style="bold")
    text.append(f"\nbatch {look.batch}", style="bold")
    text.append(f": {look.batch_events:,} events in {look.batch_seconds:.1f} s")
    if look.freshness_s is not None and look.slowest_s is not None:
        text.append("  →  ").append(f"fresh in {look.freshness_s:.1f} s", style="bold green")
        text.append(f" (slowest {look.slowest_s:.1f} s)")
    return text
