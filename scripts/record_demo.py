"""Record `cdclake demo` on a terminal as docs/demo.cast, in asciicast's format, version 2.

`make recording` runs it in the site's environment, which has a terminal emulator. A frame holds
only the lines that changed since the one before, so that the recording stays small. A run of more
than a minute is played in one; the panel's clock shows the real seconds.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pyte
from pyte.screens import Char

ROOT = Path(__file__).resolve().parents[1]
CAST = ROOT / "docs" / "demo.cast"
ARGUMENTS = ("demo", "--seconds", "10")
COMMAND = (str(ROOT / ".venv" / "bin" / "cdclake"), *ARGUMENTS)
COLUMNS, ROWS = 80, 40
FRAME_S = 1.0
LONGEST_S = 60.0
_READ_BYTES = 65536
_COLORS = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")

Frame = tuple[float, str]


def record(command: Sequence[str]) -> list[Frame]:
    """Run the command on a terminal, and return its frames; raise if it fails."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "xterm-256color"
        os.environ.pop("NO_COLOR", None)
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(sys.stdin.fileno(), termios.TIOCSWINSZ, size)
        os.execv(command[0], list(command))
    frames = list(_frames(terminal))
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code:
        raise RuntimeError(f"{' '.join(command)} exited with {code}: {frames[-1:]}")
    return frames


def _frames(terminal: int) -> Iterator[Frame]:
    """Yield what changed on the screen, at most once in FRAME_S, and at the end."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    stream.feed(f"$ cdclake {' '.join(ARGUMENTS)}\r\n".encode())
    started = time.monotonic()
    shown = [""] * ROWS
    due, is_open = FRAME_S, True
    while is_open:
        ready, _, _ = select.select([terminal], [], [], FRAME_S)
        part = _read(terminal) if ready else b""
        is_open = bool(part) or not ready
        stream.feed(part)
        elapsed = time.monotonic() - started
        if elapsed >= due or not is_open:
            lines = [_line(screen.buffer[row]) for row in range(ROWS)]
            if changed := _changed(shown, lines):
                yield round(elapsed, 1), changed
            shown, due = lines, elapsed + FRAME_S


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, _READ_BYTES)
    except OSError:  # Linux's end of a terminal
        return b""


def _changed(before: Sequence[str], after: Sequence[str]) -> str:
    return "".join(
        f"\x1b[{row + 1};1H\x1b[2K{line}"
        for row, (old, line) in enumerate(zip(before, after, strict=True))
        if old != line
    )


def _line(cells: dict[int, Char]) -> str:
    """Return the row's text with its colors."""
    row = [cells[column] for column in range(COLUMNS)]
    while row and row[-1].data == " ":
        row.pop()
    return "".join(
        f"\x1b[{style}m{text}\x1b[0m" if style else text
        for style, text in (
            (style, "".join(cell.data for cell in group)) for style, group in groupby(row, _style)
        )
    )


def _style(cell: Char) -> str:
    codes = ["1"] if cell.bold else []
    if cell.fg in _COLORS:
        codes.append(str(30 + _COLORS.index(cell.fg)))
    return ";".join(codes)


def in_a_minute(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames with their times shortened alike, so that the last one is in time."""
    factor = min(1.0, LONGEST_S / frames[-1][0])
    return [(round(at * factor, 1), text) for at, text in frames]


def main() -> int:
    """Record the demo and write the file."""
    frames = in_a_minute(record(COMMAND))
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "cdclake demo"}
    lines = [json.dumps(header)]
    lines += [json.dumps([at, "o", text], ensure_ascii=False) for at, text in frames]
    CAST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    size_kb = CAST.stat().st_size / 1000
    sys.stdout.write(f"{CAST}: {frames[-1][0]:.0f} s, {size_kb:.0f} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
