"""Keys as a command is given them: one word per column of the key."""

from __future__ import annotations

from collections.abc import Sequence

from cdclake.errors import InputError
from cdclake.plan import Table


def parse_keys(table: Table, words: Sequence[str]) -> list[tuple[str, ...]]:
    """Divide the words into keys; raise InputError if they are no whole number of keys."""
    size = len(table.key)
    if not words or len(words) % size:
        names = " ".join(name.upper() for name in table.key)
        raise InputError(
            f"the key of {table.name} has the columns {', '.join(table.key)}, and {len(words)}"
            " values were given",
            f"write `cdclake forget {table.name} {names}`, or name a file by --keys",
        )
    return [tuple(words[at : at + size]) for at in range(0, len(words), size)]
