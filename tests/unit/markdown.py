"""Markdown pages as tests read them: links, anchors, fenced blocks and code spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
_FENCED = re.compile(r"^[ \t]*```([a-z]*)\n(.*?)^[ \t]*```$", re.M | re.S)
_IN_PARENTHESES = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.M)
_ANCHOR = re.compile(r'<a id="([^"]+)">')


def pages() -> list[Path]:
    """Return every Markdown page of the project, without what is installed or built."""
    top = [*PROJECT.glob("*.md"), *(PROJECT / ".github").rglob("*.md"), PROJECT / "tests/README.md"]
    return sorted([*top, *(PROJECT / "docs").rglob("*.md")])


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the fenced blocks in these languages; an empty name is a block without one."""
    return [text for name, text in _FENCED.findall(page.read_text()) if name in languages]


def without_fences(text: str) -> str:
    """Return the text without its fenced blocks."""
    return _FENCED.sub("", text)


def spans(page: Path) -> list[str]:
    """Return the code spans outside fenced blocks."""
    return re.findall(r"`([^`\n]+)`", without_fences(page.read_text()))


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield (file, anchor) of each relative link; the anchor may be empty."""
    text = re.sub(r"`[^`\n]*`", "", without_fences(page.read_text()))
    for target in _IN_PARENTHESES.findall(text):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield ((page.parent / path).resolve() if path else page), anchor


def anchors(page: Path) -> set[str]:
    """Return what links may name behind `#`, as GitHub makes it from headings, and our own."""
    text = page.read_text()
    found = set(_ANCHOR.findall(text))
    for heading in _HEADING.findall(without_fences(text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        base = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        same = sum(1 for name in found if re.fullmatch(rf"{re.escape(base)}(-\d+)?", name))
        found.add(f"{base}-{same}" if base in found else base)
    return found
