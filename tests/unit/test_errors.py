"""The tree in the docstring of `cdclake/errors.py` is complete; each error has its meaning."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache

from cdclake import errors
from cdclake.config.problems import InvalidPipeline
from tests.source_tree import sources

ROOT = "CdcError"


def defined_errors(files: Mapping[str, str]) -> dict[str, str]:
    """Return the parent of each exception class below `CdcError`, wherever it is defined."""
    bases = {name: parents for text in files.values() for name, parents in _classes(text).items()}
    found: dict[str, str] = {}
    known = {ROOT}
    while known:
        below = {
            name: parent
            for name, parents in bases.items()
            for parent in parents
            if parent in known and name not in found
        }
        found |= below
        known = set(below)
    return found


@cache
def _classes(text: str) -> Mapping[str, list[str]]:
    """Return the names of the bases of each class in the text."""
    return {
        node.name: [base.id if isinstance(base, ast.Name) else ast.unparse(base).split(".")[-1]
                    for base in node.bases]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }  # fmt: skip


def documented_errors(text: str) -> dict[str, str]:
    """Return the parent of each class in the tree, by the depth of its branch."""
    found: dict[str, str] = {}
    path = [ROOT]
    for line in text.splitlines():
        branch = re.match(r"((?:│   |    )*)[├└]── (\w+)", line)
        if branch is not None:
            depth = len(branch[1]) // 4 + 1
            path = [*path[:depth], branch[2]]
            found[branch[2]] = path[depth - 1]
    return found


def test_error_tree_is_complete():
    assert documented_errors(errors.__doc__ or "") == defined_errors(sources())


def test_error_tree_check_finds_a_planted_class():
    planted = {"cdclake/new.py": "class Lost(errors.TableError):\n    pass\n"}
    assert defined_errors({**sources(), **planted})["Lost"] == "TableError"


def test_error_classes_have_distinct_exit_codes_and_codes():
    assert errors.InputError.exit_code == InvalidPipeline.exit_code == 2
    assert (errors.NotRunning.exit_code, errors.ComponentFailed.exit_code) == (3, 4)
    assert errors.CommitConflict.code == errors.TableError.code == "table_stopped"
    assert errors.Fenced.code == "fenced"
