r"""Statements of a SQL file as pg_dump writes it: with `COPY ... FROM stdin` and its rows.

psql's own commands (lines that begin with a backslash) are refused with their line: only psql can
run them. `\restrict` and `\unrestrict`, which newer versions of pg_dump write, are left out: they
keep psql from running such commands, which nothing here does. Carriage returns stay as they are:
they may be part of a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdclake.errors import InputError

_COPY = re.compile(r"copy\s.*\sfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)
_RESTRICT = re.compile(r"\\(un)?restrict\s+\w+\s*$", re.MULTILINE)
_OWNER = re.compile(r"alter\s[^;]*\sowner\s+to\s", re.IGNORECASE | re.DOTALL)
_TRIGGERS = re.compile(
    r"alter\s+table\s[^;]*\s(?P<switch>disable|enable)\s+trigger\s+all\s*;?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_END_OF_ROWS = re.compile(r"\n\\\.\r?(?:\n|\Z)")
_END_OF_LINE = re.compile(r"[\r\n]")  # of a comment, as for PostgreSQL
# Quoted texts, dollar quotes, comments: in them a semicolon ends nothing. Nor does it, as in psql,
# within parentheses (commands of a rule) and within the body of a function, BEGIN ATOMIC ... END.
_TOKEN = re.compile(
    r"""
    (?P<string>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*")
    | (?P<dollar>\$(?P<tag>[A-Za-z_][A-Za-z0-9_]*)?\$.*?\$(?(tag)(?P=tag))\$)
    | (?P<line>--[^\r\n]*)
    | (?P<block>/\*)
    | (?P<end>;)
    | (?P<parenthesis>[()])
    | (?P<word>\b(?i:begin\s+atomic|case|end)\b)
    | (?P<open>['"])
    """,
    re.VERBOSE | re.DOTALL,
)
_SHOWN = ("end", "parenthesis", "word")


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """Statement of a file with its first line, and the rows of a COPY from standard input."""

    sql: str
    line: int
    rows: str | None = None

    @property
    def sets_owner(self) -> bool:
        """Check whether the statement only changes an owner, as a dump's do."""
        return _OWNER.match(self.sql) is not None

    @property
    def for_administrator(self) -> str:
        """Return the statement for an administrator who is no superuser, as on RDS.

        Only superusers may switch off a table's system triggers, which check foreign keys: with
        the session's role `replica` none of its triggers runs.
        """
        match = _TRIGGERS.match(self.sql)
        if match is None:
            return self.sql
        role = "replica" if match["switch"].lower() == "disable" else "origin"
        return f"SET session_replication_role = {role}"


def read_script(file: Path) -> str:
    """Return the file's text; raise InputError if it cannot be read or is not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"could not read {file}: {reason}", "give a SQL file in UTF-8") from None


def split_script(text: str, name: str) -> Iterator[SqlStatement]:
    """Yield the file's statements in order.

    Raises InputError, with `name` and line, for a command of psql and an unfinished statement.
    """
    at, line = 0, 1
    while at < len(text):
        end = _statement_end(text, at, name)
        piece = text[at:end]
        _refuse_psql(piece, name, line)
        begun = _without_comments(piece)
        start_line = line + piece.count("\n", 0, len(piece) - len(begun))
        sql = begun.strip()
        line += piece.count("\n")
        at = end
        if not sql.rstrip(";").strip():
            continue
        if not sql.endswith(";"):
            raise InputError(f"{name}:{start_line}: the statement has no end", "add a semicolon")
        rows = None
        if _COPY.match(sql):
            rows, at = _rows(text, at, name, start_line)
            line += text.count("\n", end, at)
        yield SqlStatement(sql.rstrip(";").rstrip(), start_line, rows)


def _statement_end(text: str, at: int, name: str) -> int:
    """Return the position after the statement's semicolon, or the end of the text."""
    parentheses = blocks = 0
    while match := _TOKEN.search(text, at):
        if match["end"] and not parentheses and not blocks:
            return match.end()
        if match["parenthesis"]:
            parentheses = max(0, parentheses + (1 if match[0] == "(" else -1))
        if match["word"]:
            blocks = _blocks_after(match[0].lower(), blocks)
        if match["open"]:
            line = text.count("\n", 0, match.start()) + 1
            raise InputError(f"{name}:{line}: the quote is never closed", "close it")
        at = _comment_end(text, match.end()) if match["block"] else match.end()
    return len(text)


def _blocks_after(word: str, blocks: int) -> int:
    """Return the open blocks: BEGIN ATOMIC opens one, and in it END ends a CASE too."""
    if word.startswith("begin"):
        return blocks + 1
    if not blocks:
        return 0
    return blocks + (1 if word == "case" else -1)


def _comment_end(text: str, at: int) -> int:
    """Return the end of a block comment; PostgreSQL's nest."""
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _refuse_psql(piece: str, name: str, line: int) -> None:
    for number, row in enumerate(_without_quotes(piece).split("\n")):
        if row.lstrip().startswith("\\") and not _RESTRICT.match(row.lstrip()):
            raise InputError(
                f"{name}:{line + number}: {row.strip()!r} is a command of psql",
                "remove the line: only SQL and COPY ... FROM stdin can be run here",
            )


def _without_quotes(piece: str) -> str:
    """Return the text with the content of quotes and comments blanked, but its lines kept."""
    return _TOKEN.sub(
        lambda match: match[0] if match.lastgroup in _SHOWN else re.sub(r"[^\n]", " ", match[0]),
        piece,
    )


def _without_comments(piece: str) -> str:
    """Return the statement without the comments, and the lines `_RESTRICT`, before it."""
    while True:
        stripped = piece.lstrip()
        if stripped.startswith("--") or _RESTRICT.match(stripped):
            piece = stripped[_line_end(stripped) :]
        elif stripped.startswith("/*"):
            piece = stripped[_comment_end(stripped, 2) :]
        else:
            return stripped


def _line_end(text: str) -> int:
    """Return the position after the first line."""
    match = _END_OF_LINE.search(text)
    return match.end() if match else len(text)


def _rows(text: str, at: int, name: str, line: int) -> tuple[str, int]:
    """Return the rows of a COPY, and the position after the line that ends them."""
    begin = text.find("\n", at)
    end = _END_OF_ROWS.search(text, begin) if begin >= 0 else None
    if end is None:
        raise InputError(f"{name}:{line}: the rows of COPY have no end", "end them with a line \\.")
    return text[begin + 1 : end.start() + 1], end.end()
