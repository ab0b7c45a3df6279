"""The runbooks as tests read them: pages, and what stands in their blocks."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "runbooks"
PAGES = {page.stem: page.read_text() for page in sorted(FOLDER.glob("*.md"))}


def blocks(language: str) -> list[tuple[str, str]]:
    """Every block in this language: its page, and what stands in it."""
    return [
        (page, block.strip())
        for page, text in PAGES.items()
        for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    ]


def commands(program: str) -> list[tuple[str, str]]:
    """Every command line of this program, in blocks and in the text: its page, and the line."""
    in_blocks = [(page, line) for page, block in blocks("sh") for line in block.splitlines()]
    spans = [
        (page, span) for page, text in PAGES.items() for span in re.findall(r"`([^`\n]+)`", text)
    ]
    found = [(page, line.split(" | ")[-1]) for page, line in in_blocks] + spans
    return [(page, line) for page, line in found if line.startswith(f"{program} ")]
