"""Extract the prose of a file: docstrings, comments, strings and Markdown, each with its line."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_MARKERS = re.compile(r"#\s*(!|noqa|type:|fmt:|pragma|ruff:|mypy:)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DECISION = "docs/decisions/"
_MODELS, _COMMANDS = "cdclake/config/", "cli"  # folders whose docstrings users see


class Kind(Enum):
    """Where a passage comes from; decides which measures apply to it."""

    DOCSTRING = "docstring"  # of a function or class
    PROSE = "prose"  # module docstring, comment, page
    SHOWN = "shown"  # string that may reach a user


@dataclass(frozen=True, slots=True)
class Passage:
    """Piece of prose with code removed; `line` is the line of its first character."""

    kind: Kind
    line: int
    text: str


def passages(path: str, source: str) -> Iterator[Passage]:
    """Yield the passages of a file; `path` is relative to the project and decides the format."""
    if path.endswith(".py"):
        tree = ast.parse(source)
        yield from _docstrings(path, tree)
        yield from _python_comments(source)
        yield from _strings(tree)
    elif path.endswith(".md"):
        yield Passage(Kind.PROSE, 1, _markdown(path, source))
    elif Path(path).name == "Makefile" or path.endswith((".sh", ".yaml", ".yml")):
        yield from _hash_comments(source)
        yield from _make_helps(source)


def _docstrings(path: str, tree: ast.Module) -> Iterator[Passage]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | Documented) or ast.get_docstring(node) is None:
            continue
        expression = node.body[0]
        assert isinstance(expression, ast.Expr) and isinstance(expression.value, ast.Constant)
        text, line = _without_inline_code(str(expression.value.value)), expression.lineno
        if isinstance(node, ast.Module):
            yield Passage(Kind.PROSE, line, text)
            continue
        yield Passage(Kind.DOCSTRING, line, text)
        if _is_shown(path, node):
            yield Passage(Kind.SHOWN, line, text)


def _is_shown(path: str, node: Documented) -> bool:
    """Return whether users see this docstring: a command's help, a description in the schema."""
    if isinstance(node, ast.ClassDef):
        return path.startswith(_MODELS) and bool(node.bases)
    return Path(path).parent.name == _COMMANDS and Path(path).stem == node.name


def _python_comments(source: str) -> Iterator[Passage]:
    """Yield the comments; consecutive lines are one passage, so that phrases may wrap."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [token for token in tokens if token.type == tokenize.COMMENT]
    yield from _joined((token.start[0], token.start[1], token.string) for token in found)


def _hash_comments(source: str) -> Iterator[Passage]:
    rows = enumerate(source.splitlines(), 1)
    starts = ((line, re.search(r"(?:^|\s)(#.*)", row)) for line, row in rows)
    yield from _joined((line, match.start(1), match[1]) for line, match in starts if match)


def _make_helps(source: str) -> Iterator[Passage]:
    """Yield the texts of `make help`."""
    for line, row in enumerate(source.splitlines(), 1):
        if match := re.match(r"[a-z-]+:.*?## (.*)", row):
            yield Passage(Kind.SHOWN, line, match[1])


def _joined(comments: Iterator[tuple[int, int, str]]) -> Iterator[Passage]:
    first, last, column, lines = 0, -1, -1, list[str]()
    for line, start, comment in comments:
        if _MARKERS.match(comment):
            continue
        if (line, start) != (last + 1, column) and lines:
            yield Passage(Kind.PROSE, first, _without_inline_code("\n".join(lines)))
            lines = []
        first = line if not lines else first
        last, column = line, start
        lines.append(comment.lstrip("#"))
    if lines:
        yield Passage(Kind.PROSE, first, _without_inline_code("\n".join(lines)))


def _strings(tree: ast.Module) -> Iterator[Passage]:
    """Yield every string with a space that is no docstring: messages take many ways to a user.

    The constant parts of an f-string are one text, with `{}` in place of its values.
    """
    inside = {id(part) for node in ast.walk(tree) for part in _parts_read_with(node)}
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(_constant(value) for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield Passage(Kind.SHOWN, node.lineno, _without_inline_code(text))


def _parts_read_with(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the constants that are not texts of their own: docstrings and parts of f-strings."""
    if isinstance(node, ast.Expr):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (value for value in node.values if isinstance(value, ast.Constant))
    elif isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        yield node.format_spec


def _constant(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "{}"


def _markdown(path: str, source: str) -> str:
    """Return the page without code; of a decision only its title, the rest is history."""
    if path.startswith(_DECISION):
        return source.split("\n", 1)[0]
    lines, fence = list[str](), ""
    for line in source.split("\n"):
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
            lines.append("")
        else:
            lines.append("" if fence else line)
    text = _HTML_COMMENT.sub(_newlines, "\n".join(lines))
    return _LINK_TARGET.sub("]", _without_inline_code(text))


def _without_inline_code(text: str) -> str:
    """Replace code by a backtick, so that the words around it do not become neighbours."""
    return _INLINE_CODE.sub(lambda match: "`" + _newlines(match), text)


def _newlines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")
