"""Spellings that name no type of ours."""

import pytest

from cdclake.debezium.types import parse_type


@pytest.mark.parametrize("spelling", ["name", "interval[]", "money[]", "point[]", "box"])
def test_what_debezium_does_not_carry_is_no_type_of_ours(spelling: str) -> None:
    assert parse_type(spelling) is None
