"""Erased values in log files of the lake, which components keep open: overwritten in place."""

from __future__ import annotations

from pathlib import Path

from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.local.process.home import Home

_BLANK = b"*"


def redact_logs(home: Home, sought: SoughtValues) -> list[str]:
    """Overwrite the values in all log files; return the names of the changed files.

    Components append to these files meanwhile, so nothing is moved.
    """
    changed = []
    for file in sorted(home.logs.rglob("*")):
        if file.is_file() and _redact(file, sought):
            changed.append(file.name)
    return changed


def _redact(file: Path, sought: SoughtValues) -> bool:
    places = sought.places_in(file.read_bytes())
    if places:
        with file.open("r+b") as opened:
            for start, end in places:
                opened.seek(start)
                opened.write(_BLANK * (end - start))
    return bool(places)
