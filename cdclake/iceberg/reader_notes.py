"""Notes on views that a listed reader lacks, and on values that it changes or refuses."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.iceberg.reader_facts import READER_FACTS, ReaderFacts
from cdclake.plan import Column, Plan

_MAX_BYTES_OF_A_CHARACTER = 4
_SHORT_MASKS = frozenset({"hash", "token", "redact", "month", "null"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_CHARACTERS = frozenset({"varchar", "char", "bit", "varbit"})  # their parameter is a length


def reader_notes(plan: Plan) -> Iterator[str]:
    """Yield a note for each listed reader without views, or for values that it may not read."""
    for reader in plan.readers:
        facts = READER_FACTS[reader]
        if plan.all_tables and not facts.has_views:
            yield (
                f"{facts.title} has no `<t>_current` and no `<t>_history`: read `<t>` with"
                " `NOT cdc_deleted`, whose rows are those of the last apply"
            )
        for table in plan.all_tables:
            if names := [c.name for c in table.columns if _is_limited(c, facts)]:
                yield (
                    f"{table.source}: {facts.title} {facts.limits}: {', '.join(names)};"
                    " bound the values in the source, mask or exclude the columns, or read them"
                    " with another engine"
                )


def _is_limited(column: Column, facts: ReaderFacts) -> bool:
    state = column.column_type.state
    if state in _TIMES:
        return facts.has_few_years and not column.is_nulled
    limit = {"string": facts.max_text_bytes, "binary": facts.max_binary_bytes}.get(state)
    return limit is not None and _may_exceed(column, limit)


def _may_exceed(column: Column, limit: int) -> bool:
    kind = column.column_type
    if column.mask in _SHORT_MASKS or not kind.toastable:
        return False
    characters = column.truncate_to
    if characters is None and kind.base in _CHARACTERS and kind.parameters and not kind.array:
        characters = kind.parameters[0]
    if kind.base == "numeric" and kind.parameters and not kind.array:
        return False  # at most 1,000 digits
    return characters is None or characters * _MAX_BYTES_OF_A_CHARACTER > limit
