"""How a rule is written, and what it reads a template with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.synth.deployments import Template

# It takes one resource (its type, its properties, the whole of it) and yields what is wrong.
Rule = Callable[[str, dict[str, Any], Template], Iterator[str]]


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value below, with the keys that lead to it."""
    yield path, value
    items = value.items() if isinstance(value, dict) else ()
    for key, below in items:
        yield from walk(below, (*path, key))
    for below in value if isinstance(value, list) else ():
        yield from walk(below, path)


def listed(value: Any) -> list[Any]:
    """IAM takes one value for a list of one."""
    return value if isinstance(value, list) else [value]


def statements(properties: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every statement of every policy in a resource."""
    for path, value in walk(properties):
        if path and path[-1] == "Statement" and isinstance(value, dict):
            yield value
