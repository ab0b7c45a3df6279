"""SQL of DuckDB that converts values, also those inside of structs, lists and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duckdb.sqltypes import DuckDBPyType

from cdclake.iceberg.dialect import DUCKDB

# From an expression and the name of its type; the same expression if the value stays as it is.
Conversion = Callable[[str, str], str]
_NESTED = ("struct", "list", "array", "map")


def converted(expression: str, kind: DuckDBPyType, convert: Conversion, depth: int = 0) -> str:
    """Return the expression with `convert` applied to every value in it that has no parts.

    Parts that stay as they are keep their type, so a decimal keeps its digits.
    """
    if kind.id not in _NESTED:
        return convert(expression, str(kind))
    parts = [(name, part) for name, part in kind.children if isinstance(part, DuckDBPyType)]
    if kind.id == "struct":
        return _struct(expression, parts, convert, depth)
    if kind.id == "map":
        return _map(expression, [part for _, part in parts], convert, depth)
    [(_, element)] = parts  # an array also has its size
    return _list(expression, lambda part: converted(part, element, convert, depth + 1), depth)


def _struct(
    struct: str, fields: Sequence[tuple[str, DuckDBPyType]], convert: Conversion, depth: int
) -> str:
    parts = [f"struct_extract_at({struct}, {at})" for at in range(1, len(fields) + 1)]
    values = [
        converted(part, kind, convert, depth) for part, (_, kind) in zip(parts, fields, strict=True)
    ]
    if values == parts:
        return struct
    names = [f"{DUCKDB.name(name)} := " if name else "" for name, _ in fields]
    pack = "struct_pack" if any(names) else "row"
    packed = ", ".join(name + value for name, value in zip(names, values, strict=True))
    return f"CASE WHEN {struct} IS NOT NULL THEN {pack}({packed}) END"


def _list(held: str, convert_part: Callable[[str], str], depth: int) -> str:
    part = f"part{depth}"
    value = convert_part(part)
    return held if value == part else f"list_transform({held}, lambda {part}: {value})"


def _map(held: str, kinds: Sequence[DuckDBPyType], convert: Conversion, depth: int) -> str:
    def convert_entry(entry: str) -> str:
        parts = [f"{entry}.key", f"{entry}.value"]
        key, value = (
            converted(part, kind, convert, depth + 1)
            for part, kind in zip(parts, kinds, strict=True)
        )
        return entry if [key, value] == parts else f"struct_pack(key := {key}, value := {value})"

    entries = f"map_entries({held})"
    changed = _list(entries, convert_entry, depth)
    return held if changed == entries else f"map_from_entries({changed})"
