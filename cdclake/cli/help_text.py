"""The help of a command, from the docstring of its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def help_text(verb: Callable[..., None]) -> str:
    """Return the docstring with each paragraph on one line: the terminal has its own width."""
    return "\n\n".join(map(_joined, inspect.cleandoc(verb.__doc__ or "").split("\n\n")))


def _joined(paragraph: str) -> str:
    r"""Return the lines as one; those of a list or of an example as they are.

    >>> _joined("Start\nthe lake."), _joined("- one\n- two"), _joined("Run\n    cdclake up")
    ('Start the lake.', '- one\n- two', 'Run\n    cdclake up')
    """
    lines = paragraph.splitlines()
    is_laid_out = any(line.startswith((" ", "- ", "* ")) for line in lines)
    return paragraph if is_laid_out else " ".join(lines)
