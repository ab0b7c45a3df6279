"""Figures of tables, kept by all that they depend on, such as metadata files.

A metadata file never changes, so the figures of a table without a commit are read once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cdclake.local.process.home import write_atomically

_VERSION = 2  # of the figures: raise it when they are computed in another way


class FigureCache:
    """File of figures by name, each with the texts that it depends on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, Any] = _read(path)
        self._changed = False

    def get(self, name: str, of: Sequence[str]) -> dict[str, Any] | None:
        """Return the figures that were kept with exactly these texts, or None."""
        entry = self._entries.get(name)
        return dict(entry["figures"]) if entry and entry["of"] == list(of) else None

    def put(self, name: str, of: Sequence[str], figures: Mapping[str, Any]) -> None:
        """Keep figures, which change if one of the texts does: locations of metadata files."""
        self._entries[name] = {"of": list(of), "figures": dict(figures)}
        self._changed = True

    def save(self) -> None:
        """Write the file if anything is new; concurrent commands replace each other's.

        On a full or read-only disk the cache is not written; the figures are right without it.
        """
        if not self._changed:
            return
        text = json.dumps({"version": _VERSION, "entries": self._entries})
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self._path, text)
            self._changed = False


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    is_known = isinstance(content, dict) and content.get("version") == _VERSION
    return dict(content["entries"]) if is_known else {}
