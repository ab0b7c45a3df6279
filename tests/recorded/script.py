"""A script: SQL statements as PostgreSQL takes them, and lines for the recorder in between.

A statement ends with a line that ends with `;`. A line `--! WORD ARGUMENT...` is the recorder's:

    --! stream                            the connector starts here, with its first snapshot
    --! snapshot incremental TABLE        the table is read again, asked for by the signal table
    --! snapshot blocking TABLE           the same by Debezium's other way
    --! declare FILE                      the connector goes on under another pipeline file
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL to run, in autocommit."""

    sql: str


@dataclass(frozen=True, slots=True)
class Directive:
    """A line for the recorder."""

    word: str
    arguments: tuple[str, ...]


def steps(text: str) -> Iterator[Statement | Directive]:
    """The script's steps in order; ValueError if its last statement has no end.

    >>> list(steps("select 1;\\n--! declare a.yaml\\nselect\\n 2;\\n"))
    [Statement(sql='select 1;'), Directive(word='declare', arguments=('a.yaml',)), \
Statement(sql='select\\n 2;')]
    """
    pending: list[str] = []
    for line in text.splitlines():
        if line.startswith("--!"):
            word, *arguments = line.removeprefix("--!").split()
            yield Directive(word, tuple(arguments))
        elif line.strip() and not line.startswith("--"):
            pending.append(line)
            if line.endswith(";"):
                yield Statement("\n".join(pending))
                pending.clear()
    if pending:
        raise ValueError(f"the script ends within a statement: {pending[0]}")
