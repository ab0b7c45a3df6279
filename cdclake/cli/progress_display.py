"""Display of a command's steps on standard error, which leaves its answer alone.

On a terminal the steps are redrawn in place; otherwise a line appears every ten seconds; with
`--json` a JSON object a line.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cdclake.activity import Step
from cdclake.cli.aligned import counted, number, size

if TYPE_CHECKING:
    from rich.console import RenderableType

LINE_INTERVAL_S = 10.0
_REDRAWS_PER_S = 4


class _Writer(Protocol):
    def open(self) -> None: ...

    def close(self) -> None: ...

    def begin(self, step: Step) -> None: ...

    def end(self, step: Step) -> None: ...


class ProgressDisplay:
    """Listener that shows the steps, from the first one until the command prints its answer."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = threading.RLock()
        self._writer: _Writer | None = None

    def begin(self, step: Step) -> None:
        """Show the step."""
        with self._lock:
            if self._writer is None:
                self._writer = _writer(self._as_json)
                self._writer.open()
            self._writer.begin(step)

    def end(self, step: Step) -> None:
        """Show that the step has ended; one that began before `close` is no longer shown."""
        with self._lock:
            if self._writer is not None:
                self._writer.end(step)

    def close(self) -> None:
        """Remove the steps from the terminal: the command prints now."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None


def _writer(as_json: bool) -> _Writer:
    if as_json:
        return LineWriter(_write, json_line, writes_steps=True)
    if sys.stderr.isatty():
        return PanelWriter()
    return LineWriter(_write, text_line, writes_steps=False)


def _write(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class LineWriter:
    """Writer of a line about each running step every ten seconds."""

    def __init__(
        self,
        write: Callable[[str], None],
        line: Callable[[Step], str],
        *,
        writes_steps: bool,
        interval_s: float = LINE_INTERVAL_S,
    ) -> None:
        """With `writes_steps` also write a line when a step begins and ends."""
        self._write, self._line, self._writes_steps = write, line, writes_steps
        self._interval_s = interval_s
        self._running: list[Step] = []
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def open(self) -> None:
        """Start to write."""
        self._thread.start()

    def close(self) -> None:
        """End; no line is written afterwards."""
        self._closed.set()
        self._thread.join()

    def begin(self, step: Step) -> None:
        """Write about the step from now on."""
        self._running.append(step)
        if self._writes_steps:
            self._write(self._line(step))

    def end(self, step: Step) -> None:
        """Write that the step has ended, if it was shown or lines are for programs."""
        if step not in self._running:
            return
        self._running.remove(step)
        if self._writes_steps or step.seconds() >= self._interval_s:
            self._write(self._line(step))

    def _tick(self) -> None:
        while not self._closed.wait(self._interval_s):
            for step in self._running[-1:]:
                self._write(self._line(step))


class PanelWriter:
    """Lines of the steps that are redrawn in place, and removed at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._spinner = Spinner("dots", style="cyan")
        self._steps: list[Step] = []
        self._console = Console(stderr=True)
        self._live = Live(
            get_renderable=self.draw,
            console=self._console,
            refresh_per_second=_REDRAWS_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def open(self) -> None:
        """Start to draw."""
        self._live.start()

    def close(self) -> None:
        """Remove the lines."""
        self._live.stop()

    def begin(self, step: Step) -> None:
        """Add a line with a spinner."""
        self._steps.append(step)

    def end(self, step: Step) -> None:
        """Leave the line; it is drawn with a mark from now on."""

    def draw(self) -> RenderableType:
        """Return the last steps that fit: those that run."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=2)
        grid.add_column(no_wrap=True)
        grid.add_column(justify="right", min_width=7)
        grid.add_column(style="dim", overflow="ellipsis", no_wrap=True)
        fitting = max(self._console.height - 1, 1)
        for step in self._steps[-fitting:]:
            done = step.ended is not None
            mark = Text("✓", style="green") if done else self._spinner
            grid.add_row(mark, Text(step.name), f"{step.seconds():.1f} s", Text(advance_text(step)))
        return grid


def text_line(step: Step) -> str:
    """Return a line of text about the step."""
    more = advance_text(step)
    state = "done" if step.ended is not None else "..."
    return f"{step.seconds():5.0f} s  {step.name} {state}{f': {more}' if more else ''}"


def advance_text(step: Step) -> str:
    """Return the progress of the step, its rate and the time left, where they are known."""
    advance = step.advance
    if advance is None:
        return ""
    parts = [advance.now] if advance.now and step.ended is None else []
    if advance.done or advance.total is not None:
        of = "" if advance.total is None else f" of {number(advance.total)}"
        what = f"{number(advance.done)}{of} {advance.unit}" if of else ""
        parts.append(what or counted(advance.done, advance.unit.removesuffix("s")))
    if advance.size is not None:
        parts.append(size(advance.size))
    rate, left = step.per_second(), step.seconds_left()
    if rate is not None and step.ended is None and advance.unit == "rows":
        parts.append(f"{rate:,.0f} {advance.unit}/s")
    if left is not None and step.ended is None:
        parts.append(f"{left:,.0f} s left")
    return ", ".join(parts)


def json_line(step: Step) -> str:
    """Return a JSON object about the step."""
    shown: dict[str, Any] = {
        "step": step.name,
        "state": "running" if step.ended is None else "ended",
        "seconds": round(step.seconds(), 1),
    }
    if advance := step.advance:
        shown |= {"done": advance.done, "total": advance.total, "unit": advance.unit}
        shown |= {"bytes": advance.size, "now": advance.now or None}
        rate, left = step.per_second(), step.seconds_left()
        shown["per_second"] = None if rate is None else round(rate, 1)
        shown["seconds_left"] = None if left is None else round(left)
    return json.dumps({"progress": shown})
