"""Pipeline files for tests, made from one small valid file."""

from __future__ import annotations

from collections.abc import Callable

VALID = """\
version: 1
name: shop
source: {database: shop}
tables:
  public.orders:
    key: [order_id]
    columns:
      order_id: bigint
      note: text
      placed_at: timestamptz
"""


def with_line(line: str, after: str) -> str:
    """`VALID` with `line` put in below the line that reads `after`."""
    lines = VALID.splitlines()
    lines.insert([text.strip() for text in lines].index(after) + 1, line)
    return "\n".join(lines) + "\n"


def replaced(old: str, new: str) -> str:
    """`VALID` with one text in place of another."""
    assert VALID.count(old) == 1
    return VALID.replace(old, new)


def below(anchor: str) -> Callable[[str], str]:
    """A function that puts a line into `VALID`, below the line that reads `anchor`."""
    return lambda line: with_line(line, anchor)


top = below("version: 1")
