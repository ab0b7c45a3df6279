"""The examples in the docstrings hold."""

import doctest
from importlib import import_module

import pytest

from tests.source_tree import CODE, module_of, sources

MODULES = [
    module_of(path)
    for path, text in sources(*CODE, "tests").items()
    if ">>> " in text and "/test_" not in path
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_hold(name: str) -> None:
    found = doctest.testmod(import_module(name))
    assert found.attempted and found.failed == 0
