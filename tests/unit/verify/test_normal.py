"""Two spellings of one value, and of two."""

import doctest

import pytest

from cdclake.verify import calendar, normal, statements


@pytest.mark.parametrize("module", [calendar, normal, statements])
def test_what_the_docstrings_say(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("1.50", "1.5", True),
        ("0", "-0.000", True),
        ("100", "100.00", True),
        ("100", "10", False),
        ("0.1", ".1", True),
        ("NAN", "NAN", True),
        ("1", "1.0000000000000000000000000000001", False),
    ],
)
def test_numbers(left, right, equal):
    assert (normal.number(left) == normal.number(right)) is equal


def test_arrays_are_compared_as_json_by_elements():
    texts = normal.array(normal.as_it_is)
    assert texts('["a","\\u001f",null]') == texts('["a", "\\u001F", null]')
    assert texts('["a"]') != texts('["A"]')
    assert texts("[1]") != texts("[1,null]")
    assert texts("not json") == "not json"
    numbers = normal.array(normal.number)
    assert numbers('["1.50",null]') == numbers('["1.5",null]')
    assert numbers("[123456789012345678901234567890.1]") != numbers(
        "[123456789012345678901234567890.2]"
    )


def test_instants_in_arrays():
    event = normal.array(normal.instant)
    assert event('["2024-01-01T01:02:03.4Z",null]') == normal.array(normal.as_it_is)(
        '["1704070923400000",null]'
    )


def test_hstore_by_keys():
    assert normal.hstore_text('"b"=>NULL, "a"=>"1"') == normal.hstore_json('{"a":"1","b":null}')
    assert normal.hstore_text('"a"=>"1"') != normal.hstore_json('{"a":"2"}')
    assert normal.hstore_text("") == normal.hstore_json("{}")
