"""Lines of a pipeline file, quoted so that YAML reads each value unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdclake.debezium.types import ColumnType
from cdclake.masks import can_mask
from cdclake.plan import Column

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
_NOT_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def scalar(text: str) -> str:
    """Return `text` as a YAML scalar that is read as exactly this text, in any place.

    >>> scalar("public.orders"), scalar("a: #b"), scalar("it's"), scalar("no")
    ('public.orders', "'a: #b'", "'it''s'", "'no'")
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    if all(character.isprintable() for character in text):
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def retyped_line(column: Column, kind: ColumnType) -> str:
    """Return the column's line with another type and its mask; excluded if that fits no mask.

    >>> mail = Column(source="mail", name="mail", type="text", mask="hash")
    >>> retyped_line(mail, ColumnType("varchar", (20,)))
    "mail: {type: 'varchar(20)', mask: hash}"
    >>> retyped_line(mail, ColumnType("bigint"))
    'mail: {exclude: true}'
    """
    name = scalar(column.source)
    if column.mask is None:
        return f"{name}: {kind}"
    if not can_mask(column.mask, kind):
        return f"{name}: {{exclude: true}}"
    return f"{name}: {{{', '.join((f'type: {scalar(str(kind))}', *_mask_field(column)))}}}"


def _mask_field(column: Column) -> Iterator[str]:
    if column.mask is not None:
        width = "" if column.truncate_to is None else f"({column.truncate_to})"
        yield f"mask: {scalar(column.mask + width)}"


def renamed_line(column: Column, name: str) -> str:
    """Return the column's line after it was renamed to `name`; excluded if its type fits no mask.

    >>> renamed_line(Column(source="mail", name="mail", type="varchar(20)", mask="hash"), "email")
    "email: {type: 'varchar(20)', mask: hash, renamed_from: mail}"
    >>> renamed_line(Column(source="mail", name="mail", type="bigint", mask="hash"), "email")
    'email: {exclude: true}'
    """
    if column.mask is not None and not can_mask(column.mask, column.column_type):
        return f"{scalar(name)}: {{exclude: true}}"
    fields = [f"type: {scalar(column.type)}", *_mask_field(column)]
    earlier = ", ".join(map(scalar, (*column.renamed_from, column.source)))
    fields.append(
        f"renamed_from: [{earlier}]" if column.renamed_from else f"renamed_from: {earlier}"
    )
    return f"{scalar(name)}: {{{', '.join(fields)}}}"
