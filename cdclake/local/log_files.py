"""Log lines of a local lake's components, merged by time."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from cdclake.errors import InputError, NotRunning
from cdclake.local.process.child_process import rotated_log
from cdclake.local.process.home import Home
from cdclake.log_line import LogLine, merged_lines
from cdclake.time_spans import as_utc

_POLL_S = 0.5
_MAX_LINES_WITHOUT_TIME = 1000
# As PostgreSQL, log4j, Python and the supervisor begin a line; all of them write UTC.
_TIME = re.compile(
    r"\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{3})\d*)?(?: UTC|Z|\+00:00)?\]? ?"
)


def log_lines(
    home: Home, component: str | None, after: datetime, *, follow: bool
) -> Iterator[LogLine]:
    """Yield the lines of one component, or of all, from a time on, in the order of time.

    Lines from before the last rotation of a log are included.
    A line without a time, as of a traceback, has that of the line before it. With `follow` it goes
    on forever, also with the log of a job that starts later.
    """
    files = {path.stem: path for path in sorted(home.logs.glob("*.log"))}
    if not files:
        raise NotRunning(f"no lake has run in {home.path}", "start one with `cdclake up`")
    if component is not None and component not in files:
        raise InputError(f"unknown component {component!r}", f"choose one of {', '.join(files)}")
    tail = _FolderTail(home, component, after)
    for line in merged_lines([tail], follow=follow, poll_seconds=_POLL_S):
        if line.at >= after:
            yield line


class _FolderTail:
    """Reader of the folder's logs, or of one, with those that are created meanwhile."""

    def __init__(self, home: Home, component: str | None, after: datetime) -> None:
        self._home, self._pattern = home, f"{component or '*'}.log"
        self._after = after
        self._tails: dict[Path, _Tail] = {}

    def lines(self) -> Iterator[LogLine]:
        """Yield the lines that are new, in the order of time."""
        paths = sorted(self._home.logs.glob(self._pattern))
        for path in paths:
            if path not in self._tails:
                self._tails[path] = _Tail(path.stem, path, self._after)
        return heapq.merge(*(self._tails[path].lines() for path in paths))


class _Tail:
    """Reader of one log that goes on where it has stopped, also after a rotation."""

    def __init__(self, component: str, path: Path, after: datetime) -> None:
        self._component, self._path = component, path
        self._offset = 0
        old = rotated_log(path)
        self._reads_old = old.exists() and old.stat().st_mtime >= after.timestamp()
        first = old if self._reads_old else path
        self._at = _first_time(first) or datetime.fromtimestamp(first.stat().st_ctime, UTC)

    def lines(self) -> Iterator[LogLine]:
        """Yield the complete lines that are new; after a rotation first those of the old file."""
        if self._reads_old or self._path.stat().st_size < self._offset:
            self._reads_old = False
            if (old := rotated_log(self._path)).exists():
                yield from self._lines_of(old)
            self._offset = 0
        yield from self._lines_of(self._path)

    def _lines_of(self, path: Path) -> Iterator[LogLine]:
        with path.open("rb") as file:
            file.seek(self._offset)
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                self._offset += len(raw)
                yield self._parsed(raw.decode("utf-8", "replace").rstrip())

    def _parsed(self, text: str) -> LogLine:
        if text.startswith("{"):
            return self._of_json(text)
        match = _TIME.match(text)
        if match:
            self._at = _written(match)
            text = text[match.end() :]
        return LogLine(self._at, self._component, text)

    def _of_json(self, text: str) -> LogLine:
        """Return the line of a job, whose lines are JSON."""
        try:
            fields = json.loads(text)
            self._at = _parse_time(fields.pop("at"))
            message = fields.pop("message")
        except (ValueError, KeyError, AttributeError):
            return LogLine(self._at, self._component, text)
        level = fields.pop("level", "INFO")
        error = fields.pop("error", "")
        where = "".join(f" {name}={value}" for name, value in fields.items())
        shown = f"{'' if level == 'INFO' else level + ' '}{message}{where}"
        return LogLine(self._at, self._component, f"{shown}\n{error}" if error else shown)


def _first_time(path: Path) -> datetime | None:
    """Return the first time in a log: that of the lines before it."""
    with path.open("rb") as file:
        for raw in islice(file, _MAX_LINES_WITHOUT_TIME):
            text = raw.decode("utf-8", "replace")
            if match := _TIME.match(text):
                return _written(match)
            if text.startswith("{"):
                with suppress(ValueError, KeyError, TypeError):
                    return _parse_time(json.loads(text)["at"])
    return None


def _written(match: re.Match[str]) -> datetime:
    return _parse_time(f"{match[1]}T{match[2]}.{match[3] or '000'}")


def _parse_time(text: str) -> datetime:
    return as_utc(datetime.fromisoformat(text))
