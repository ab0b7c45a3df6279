"""Names that a service limits in length."""

from __future__ import annotations

import re

import pytest

from cdclake import naming

LONG = "a" * 128


@pytest.mark.parametrize("name", [naming.schedule_name, naming.delivery_stream_name])
def test_long_names_are_shortened_and_stay_distinct(name) -> None:
    found = {name("shop-prod", f"publish-{LONG}{suffix}") for suffix in ("", "b", "c")}
    assert len(found) == 3
    assert all(re.fullmatch(r"shop-prod-publish-a{37}-[0-9a-f]{8}", each) for each in found)
    assert {len(each) for each in found} == {64}


def test_a_name_of_the_longest_length_is_kept() -> None:
    longest = "b" * (64 - len("shop-"))
    assert naming.schedule_name("shop", longest) == f"shop-{longest}"
    assert naming.schedule_name("shop", f"{longest}b") != f"shop-{longest}b"
