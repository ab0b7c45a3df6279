"""Keys that a command erases: as the source spells them, and no longer in the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cdclake.errors import InputError
from cdclake.jobs.forget.key_spellings import stored_spellings
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.jobs.runtime.source_key import has_row, key_by_source
from cdclake.plan import Table
from cdclake.trace.row_key import RowKey

_MAX_SHOWN = 5


def erasable_keys(
    dsn: str,
    table: Table,
    words: Sequence[tuple[str, ...]],
    reader: Callable[[], Reader],
    *,
    is_logged: bool = False,
) -> list[RowKey]:
    """Return the keys as the changelog has them; raise InputError if the source has their rows.

    They are in every spelling that the lake has of them, since `Ada` and `ada` are equal `citext`.
    The next snapshot would bring such a row back. The error names keys by their values; if it
    `is_logged`, by their numbers among the distinct ones, in the given order.
    """
    names = {
        each: f"key number {number}" if is_logged else " ".join(each)
        for number, each in enumerate(dict.fromkeys(words), 1)
    }
    with connect(dsn) as connection:
        keys = [
            _key(connection, table, each, name if is_logged else None)
            for each, name in names.items()
        ]
        present = [names[key.words] for key in keys if has_row(connection, key)]
        spelled = [] if present else stored_spellings(connection, reader, keys)
    if present:
        raise InputError(
            f"the source still has {', '.join(_shown(present))} in {table.source}, so the rows"
            " would come back",
            "delete them in the source first, then run the command again",
        )
    return list({tuple(key.parts): key for key in (*keys, *spelled)}.values())


def _key(connection: Connection, table: Table, words: tuple[str, ...], named: str | None) -> RowKey:
    try:
        return key_by_source(connection, table, words)
    except InputError as error:
        if named is None:
            raise
        raise InputError(f"invalid {named} of {table.name}", error.remedy) from None


def _shown(names: Sequence[str]) -> Iterator[str]:
    yield from names[:_MAX_SHOWN]
    if len(names) > _MAX_SHOWN:
        yield f"and {len(names) - _MAX_SHOWN} more"
