"""Keys that a command erases: as the source spells them, and no longer in the source."""

from __future__ import annotations

from collections.abc import Sequence

from cdclake.errors import InputError
from cdclake.jobs.runtime.source import connect
from cdclake.local.lake.lake import LocalLake
from cdclake.local.trace.source_key import key_by_source
from cdclake.local.trace.source_row import has_row
from cdclake.plan import Table
from cdclake.trace.row_key import RowKey

_MAX_SHOWN = 5


def keys_of_words(table: Table, words: Sequence[str]) -> list[tuple[str, ...]]:
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


def erasable_keys(lake: LocalLake, table: Table, words: Sequence[tuple[str, ...]]) -> list[RowKey]:
    """Return the keys as the changelog has them; raise InputError if the source has their rows.

    The next snapshot would bring such a row back.
    """
    with connect(lake.dsn) as connection:
        keys = [key_by_source(connection, table, each) for each in dict.fromkeys(words)]
        present = [key.words for key in keys if has_row(connection, key)]
    if present:
        shown = ", ".join(" ".join(each) for each in present[:_MAX_SHOWN])
        more = f" and {len(present) - _MAX_SHOWN} more" if len(present) > _MAX_SHOWN else ""
        raise InputError(
            f"the source still has {shown}{more} in {table.source}, so the rows would come back",
            "delete them in the source first, then run the command again",
        )
    return keys
