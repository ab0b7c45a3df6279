"""Write docs/types.md: every type on its way, from the code's own tables and a real recording.

`python -m scripts.types_page` writes the page; a unit test fails as long as it is not the newest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from cdclake.debezium.toast_placeholder import is_lost_when_unsent
from cdclake.debezium.types import ALIASES, ARRAY_ELEMENTS, TYPES, ColumnType, Conversion
from tests.recorded.recording import Recording

PAGE = Path(__file__).resolve().parents[1] / "docs" / "types.md"

_TEXT = "PostgreSQL's text"
_IN_THE_EVENT = {
    "boolean": "true or false",
    **dict.fromkeys(("smallint", "integer", "bigint", "oid"), "number"),
    **dict.fromkeys(("real", "double precision"), 'number; `"NaN"`, `"Infinity"`, `"-Infinity"`'),
    "numeric": 'digits; `"NAN"`, `"POSITIVE_INFINITY"`, `"NEGATIVE_INFINITY"`',
    "money": "digits",
    "date": "days since 1970",
    "timestamp": "microseconds since 1970",
    "timestamptz": "ISO 8601 in UTC",
    "time": "microseconds since midnight",
    "timetz": "time in UTC",
    "interval": "ISO 8601",
    "bytea": "base64",
    "hstore": "JSON object",
    "bit": "bit(1): true or false; else base64, the lowest byte first",
    "varbit": "base64, the lowest byte first",
    "point": "JSON object",
    "vector": "JSON array",
}
_NOT_HELD = {
    Conversion.DECIMAL: "NaN, infinities",
    Conversion.DATE: "infinities",
    Conversion.TIMESTAMP: "infinities; years after 294246",
    Conversion.TIMESTAMPTZ: "infinities; years after 294246",
}
# What Debezium 3.7 changes, recorded by tests/recorded/types.sql and asserted in limits.py there.
_CHANGED = {
    "date": "in a snapshot years BC lose their era, and 5 to 14 October 1582 move by 10 days",
    "interval": "infinities become 0",
    "bit": "zeros in front",
    "varbit": "zeros in front",
    "date[]": "years BC lose their era, 5 to 14 October 1582 move by 10 days, infinities become"
    " other numbers",
    "timestamp[]": "days before 15 October 1582 move (Julian calendar), infinities become the"
    " greatest and least number",
    "timestamptz[]": "years BC lose their era, 5 to 14 October 1582 move by 10 days, -infinity"
    " becomes the year 292269055",
    "time[]": "24:00 becomes 00:00",
    "numeric[]": "an array with NaN or an infinity comes as NULL",
    "enum[]": "an array with a NULL comes as NULL",
}

_HEAD = """\
# Types

Made by `make docs` from `cdclake/debezium` and from what a real Debezium 3.7 sent
(`make record`, `tests/recorded/types.sql`); do not edit it.

- **In the event** is the form in the JSON that Debezium writes, with a recorded example.
- **Not held**: `<t>`'s type has no such value. The event is quarantined, or the value becomes NULL
  if the file says `not_representable: null`. `<t>_changes` could hold it.
- **Changed by Debezium** before anybody here sees it. Nothing in the event tells such a value from
  a right one, so it is not refused; `cdclake verify` shows it as different.
- **Identity full**: of a large value that an UPDATE leaves alone PostgreSQL sends nothing. Debezium
  has a placeholder for that, but not for these types, of which it would send NULL. A table with
  such a column is refused unless its `replica_identity` is `full`.
"""
_TAIL = """\
## Everything else

- A domain flows as its base type. A stored generated column is not in PostgreSQL's stream: it is
  omitted. All other types are refused (`name`, `box`, composite types, arrays of domains, ...);
  `{exclude: true}` leaves the column out.
- An array is a JSON array. Its bounds are not in the event. One that has more dimensions than its
  column declares comes with its inner arrays as NULL or as names of Java objects.
- Other spellings: %s.
"""


def page() -> str:
    """The page's text."""
    scalars = [_numeric(12, 2), *(ColumnType(base) for base in TYPES)]
    arrays = [ColumnType(base, array=True) for base in TYPES if base in ARRAY_ELEMENTS]
    aliases = ", ".join(f"`{alias}` = `{base}`" for alias, base in ALIASES.items())
    return "\n".join(
        [_HEAD, *_table(scalars), "", "## Arrays", "", *_table(arrays), "", _TAIL % aliases]
    )


def _numeric(precision: int, scale: int) -> ColumnType:
    return ColumnType("numeric", (precision, scale))


def _table(types: list[ColumnType]) -> Iterator[str]:
    yield (
        "| PostgreSQL | in the event | for example | in `<t>_changes` | in `<t>` | not held"
        " | changed by Debezium | identity full |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    examples = _examples()
    for column_type in types:
        cells = (
            _spelled(column_type),
            _form(column_type),
            examples.get(_sample(column_type), "not recorded"),
            column_type.log,
            _state(column_type),
            "" if column_type.base == "money" else _NOT_HELD.get(column_type.conversion, ""),
            _CHANGED.get(str(column_type), ""),
            _identity_full(column_type),
        )
        yield "| " + " | ".join(cells) + " |"


def _spelled(column_type: ColumnType) -> str:
    if column_type.parameters:
        return "`numeric(p, s)`, p up to 38"
    wider = column_type.base == "numeric" and not column_type.array
    return f"`{column_type}`" + (", and p above 38" if wider else "")


def _identity_full(column_type: ColumnType) -> str:
    if column_type.base in ("bit", "varbit"):
        return "above 128 bits"
    return "needed" if is_lost_when_unsent(column_type) else ""


def _state(column_type: ColumnType) -> str:
    named = {"timestamp_ntz": "timestamp without zone", "timestamp": "timestamp with zone"}
    state = column_type.state
    return "decimal(p,s)" if column_type.parameters else named.get(state, state)


def _form(column_type: ColumnType) -> str:
    form = _IN_THE_EVENT.get(column_type.base, _TEXT)
    return f"JSON array: {form}" if column_type.array else form


def _sample(column_type: ColumnType) -> tuple[str, bool, bool]:
    """Types of one sample: the parameters matter only where they choose the type in `<t>`."""
    return column_type.base, column_type.array, column_type.state.startswith("decimal")


def _examples() -> dict[tuple[str, bool, bool], str]:
    """The recorded value of the first column of each type, as JSON; of a row that was streamed."""
    recording = Recording.load("types")
    table = recording.plan.table("public.typed")
    rows = [record.event["after"] for record in recording.of_topic(table.topic)]
    row = next(row for row in rows if row["id"] == 101)
    found: dict[tuple[str, bool, bool], str] = {}
    for column in table.columns:
        if column.mask is None:
            shown = json.dumps(row[column.source], ensure_ascii=False).replace("|", "\\|")
            found.setdefault(_sample(column.column_type), f"`{shown}`")
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
