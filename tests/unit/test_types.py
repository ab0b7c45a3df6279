"""Which spellings name a type of ours, and how Debezium says that a value was not sent."""

import doctest

import pytest

from cdclake.debezium import toast_placeholder, types
from cdclake.debezium.types import parse_type


@pytest.mark.parametrize("module", [types, toast_placeholder])
def test_what_the_docstrings_say(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("spelling", ["name", "interval[]", "money[]", "point[]", "box"])
def test_what_debezium_does_not_carry_is_no_type_of_ours(spelling: str) -> None:
    assert parse_type(spelling) is None
