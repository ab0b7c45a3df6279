"""Texts that an installation shows name only what it has: its commands, options and runbooks."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdclake.cli.main import commands
from cdclake.runbooks import runbook_titles
from tests.source_tree import PROJECT
from tests.unit.typed_commands import unknown_words

SHIPPED = ("cdclake", "glue_jobs", "stacks", "lambda")
# May name targets of the Makefile: the remedy of a clone, and the head of a file that is generated.
OF_A_CLONE = {
    *("cdclake/extras.py", "cdclake/jar_lock.py", "cdclake/places.py"), "cdclake/config/regions.py",
}  # fmt: skip
FILES = sorted(
    path
    for folder in SHIPPED
    for path in (PROJECT / folder).rglob("*.py")
    if not path.is_relative_to(PROJECT / "cdclake" / "resources")
)
# README.md is in a project of `cdclake new`.
REPOSITORY_PAGE = re.compile(r"\bdocs/[\w./-]*|\b(?!README\b)[\w-]+\.md\b")
PLACEHOLDER = "{}"


def texts(source: str) -> Iterator[str]:
    """Yield the strings that are no docstrings, with `{}` in place of an f-string's values."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def problems(text: str, *, may_make: bool = False) -> list[str]:
    """Return what the text names and an installation lacks."""
    found = REPOSITORY_PAGE.findall(text)
    spans = re.findall(r"`([^`]+)`", text)
    found += [span for span in spans if span.startswith("make ") and not may_make]
    named = {span for span in spans if span.startswith("cdclake ")}
    named |= set(re.findall(r"cdclake runbook [\w{}-]+", text))
    return found + [line for line in sorted(named) if not is_taken(shlex.split(line))]


def is_taken(words: list[str]) -> bool:
    if words[1:2] == ["runbook"] and words[2:] not in ([], [PLACEHOLDER], ["NAME"]):
        return words[2] in runbook_titles()
    return words[1] == PLACEHOLDER or unknown_words(words) == []


def name_of(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def test_texts_of_the_package_name_what_an_installation_has() -> None:
    assert len(FILES) > 300
    wrong = [
        f"{name_of(file)}: {problem}"
        for file in FILES
        for text in texts(file.read_text())
        for problem in problems(text, may_make=name_of(file) in OF_A_CLONE)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", commands())
def test_help_names_what_an_installation_has(name: str) -> None:
    command = commands()[name]
    shown = [command.help, command.epilog, *(getattr(each, "help", "") for each in command.params)]
    assert [problem for text in filter(None, shown) for problem in problems(text)] == []


@pytest.mark.parametrize(
    "planted",
    [
        'InputError("x", "see docs/quality-rules.md")',
        'f"alarm {name} is on: see docs/runbooks/{name}.md"',
        '"read CHANGELOG.md"',
        '"run `make plugins`"',
        '"run `cdclake runbok lag`"',
        '"run `cdclake runbook lagg`"',
        'f"{prefix}: it is late. Runbook: cdclake runbook lagg"',
        'f"run `cdclake resync {table} --no-such-option`"',
    ],
)
def test_planted_texts_are_found(planted: str) -> None:
    [text] = [text for text in texts(f"name = 1\nx = [{planted}]") if problems(text)]
    assert len(problems(text)) == 1


def test_texts_that_are_right_are_accepted() -> None:
    for text in ("see `cdclake runbook lag`", "`cdclake runbook {}`", "run `cdclake resync {}`"):
        assert problems(text) == []


def test_texts_of_deployed_code_name_up_only_for_a_local_lake() -> None:
    wrong = [
        f"{name_of(file)}: {text}"
        for file in FILES
        if not name_of(file).startswith("cdclake/")
        for text in texts(file.read_text())
        if "cdclake up" in text.replace("(locally `cdclake up`)", "")
    ]
    assert wrong == []
