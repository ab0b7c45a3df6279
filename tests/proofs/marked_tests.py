"""Number of the tests with a mark, by the text of their file: pytest would import Spark for it."""

from __future__ import annotations

import ast
import re
from functools import cache


@cache
def count_tests(text: str, mark: str) -> int:
    """Count the test functions that have the mark, or cases or a fixture with it.

    Cases of one function count once.
    """
    tree = ast.parse(text)
    declared = {name: _declaration(node) for node in tree.body for name in _names(node)}
    tests = [text for name, text in declared.items() if name.startswith("test_")]
    marked = {name for name, text in declared.items() if re.search(rf"\bmark\.{mark}\b", text)}
    if "pytestmark" in marked:
        return len(tests)
    wanted = "|".join([rf"mark\.{mark}", *(n for n in marked if not n.startswith("test_"))])
    return sum(re.search(rf"\b({wanted})\b", text) is not None for text in tests)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _declaration(node: ast.stmt) -> str:
    """Return a function's decorators and arguments, or an assignment's value."""
    if isinstance(node, ast.FunctionDef):
        return "\n".join(ast.unparse(part) for part in (*node.decorator_list, node.args))
    return ast.unparse(node.value) if isinstance(node, ast.Assign) and node.value else ""
