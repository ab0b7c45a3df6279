"""Parser from YAML text to a `Document`."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from cdclake.config.document import Document, Location, Span
from cdclake.config.problems import InvalidPipeline, Problem
from cdclake.passwords import is_password_key

MAX_BYTES = 1024 * 1024
_TAG = "tag:yaml.org,2002:"
_MAX_VALUES = 100_000  # a few lines of nested aliases must not exhaust the memory
# Aliases and tags that the parser repeats: parts of a password that is written without quotes.
_NAMES = re.compile(r"""\s*(['"])(?!<|\1)(?:(?!\1).){3,}\1""")
_START = "start with `version: 1`; `cdclake init` writes a file from a database"
_TOO_DEEP = Problem(1, 1, "the file is nested too deeply", "remove the extra levels")


class _TooLarge(Exception):
    """Aliases that expand to more values than any pipeline has."""


def read_document(path: Path) -> Document:
    """Read the file's document; raise `InvalidPipeline` if it cannot be read at all."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InvalidPipeline(
                str(path),
                [Problem(1, 1, "the file is larger than 1 MiB", "split it into several pipelines")],
            )
        return parse_document(data.decode("utf-8-sig"))
    except OSError as error:
        reason = error.strerror or str(error)
        problem = Problem(
            1, 1, f"the file cannot be read ({reason})", "check its path and permissions"
        )
        raise InvalidPipeline(str(path), [problem]) from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problem = Problem(line, 1, "the file is not UTF-8 text", "save it as UTF-8")
        raise InvalidPipeline(str(path), [problem]) from None


def parse_document(text: str) -> Document:
    """Parse the text; mistakes in the YAML itself become problems of the document."""
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        return _Reader().read(node)
    except MarkedYAMLError as error:
        return Document({}, {}, (_syntax_problem(error),))
    except ReaderError as error:
        line = text[: error.position].count("\n") + 1
        message = f"the character {chr(error.character)!r} is not allowed in YAML"
        return Document({}, {}, (Problem(line, 1, message, "remove it"),))
    except YAMLError as error:
        message = str(error).splitlines()[0]
        return Document({}, {}, (Problem(1, 1, message, "correct the YAML"),))
    except RecursionError:
        return Document({}, {}, (_TOO_DEEP,))
    except _TooLarge:
        problem = Problem(1, 1, "the file's aliases expand to too many values", "write them out")
        return Document({}, {}, (problem,))


def _syntax_problem(error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    words = _NAMES.sub("", error.problem or error.context or "it cannot be parsed")
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    remedy = "correct the YAML: check indentation, quotes and brackets here and on the line above"
    if "another document" in words:
        remedy = "write one pipeline per file"
    return Problem(line, column, f"not valid YAML: {words}", remedy)


def _place(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_secret(location: Location) -> bool:
    """Check whether the value at this place is that of a password, by its key."""
    return isinstance(location[-1], str) and is_password_key(location[-1])


class _Reader:
    def __init__(self) -> None:
        self.spans: dict[Location, Span] = {}
        self.problems: list[Problem] = []
        self.open: list[int] = []
        self.constructor = YAML(typ="safe", pure=True).constructor

    def read(self, root: Node | None) -> Document:
        if not isinstance(root, MappingNode):
            what = "the file is empty" if root is None else "the file is not a mapping"
            return Document({}, {}, (Problem(1, 1, what, _START),))
        if not root.value:
            return Document({}, {}, (Problem(*_place(root), "the file is empty", _START),))
        self.spans[()] = Span((1, 1), (1, 1))
        return Document(self._mapping(root, ()), self.spans, tuple(self.problems))

    def _value(self, node: Node, location: Location) -> Any:
        if len(self.spans) > _MAX_VALUES:
            raise _TooLarge
        if id(node) in self.open:
            self._refuse(node, "an alias contains itself", "write the values out")
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node, is_secret=_is_secret(location))
        self.open.append(id(node))
        if isinstance(node, MappingNode):
            value: Any = self._mapping(node, location)
        else:
            assert isinstance(node, SequenceNode)
            value = self._sequence(node, location)
        self.open.pop()
        return value

    def _mapping(self, node: MappingNode, location: Location) -> dict[str, Any]:
        self._check_tag(node, "map")
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key is None:
                continue
            here = (*location, key)
            if key in values:
                first = self.spans[here].key[0]
                remedy = f"remove one of the two; the first is on line {first}"
                self._refuse(key_node, f"the key {key!r} is duplicated", remedy)
                continue
            empty = isinstance(value_node, ScalarNode) and value_node.value == ""
            empty = empty and value_node.tag == f"{_TAG}null"
            self.spans[here] = Span(_place(key_node), _place(value_node), empty)
            values[key] = self._value(value_node, here)
        return values

    def _key(self, node: Node) -> str | None:
        if not isinstance(node, ScalarNode):
            self._refuse(node, "a key must be text", "write one name before the colon")
            return None
        if node.tag == f"{_TAG}merge":
            self._refuse(node, "merge keys (`<<`) are not supported", "write the keys out")
            return None
        return str(node.value)

    def _sequence(self, node: SequenceNode, location: Location) -> list[Any]:
        self._check_tag(node, "seq")
        values = []
        for index, item in enumerate(node.value):
            here = (*location, index)
            self.spans[here] = Span(_place(item), _place(item))
            values.append(self._value(item, here))
        return values

    def _scalar(self, node: ScalarNode, *, is_secret: bool) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        if kind in ("str", "timestamp", "merge", "value"):
            return str(node.value)
        if kind == "null":
            return None
        if kind in ("bool", "int", "float"):
            return self._number(node, kind, is_secret=is_secret)
        self._check_tag(node, "str")
        return str(node.value)

    def _number(self, node: ScalarNode, kind: str, *, is_secret: bool) -> Any:
        shown = "this value" if is_secret else repr(node.value[:40])
        try:
            value = getattr(self.constructor, f"construct_yaml_{kind}")(node)
            is_rounded = isinstance(value, float) and Decimal(repr(value)) != Decimal(node.value)
        except (ValueError, KeyError, IndexError, InvalidOperation):
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            self._refuse(node, f"{shown} is not a valid number", "quote it as text")
            return None
        if is_rounded:
            rounded = "" if is_secret else f" to {value!r}"
            self._refuse(node, f"{shown} would be rounded{rounded}", "quote it as text")
        return value

    def _check_tag(self, node: Node, expected: str) -> None:
        if node.tag != f"{_TAG}{expected}":
            remedy = "remove the tag, or quote a text that begins with `!`"
            self._refuse(node, "a YAML tag is not allowed", remedy)

    def _refuse(self, node: Node, message: str, remedy: str) -> None:
        self.problems.append(Problem(*_place(node), message, remedy))
