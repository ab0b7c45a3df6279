"""Two spellings of one value, and of two."""

import pytest

from cdclake.plan import Column
from cdclake.verify import normal
from cdclake.verify.columns import compared_columns
from tests.unit.verify.lakes import make_plan, make_table


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


@pytest.mark.parametrize(
    ("kept", "text", "cut"),
    [
        (1, "😀", ""),
        (2, "😀", "😀"),
        (3, "ab😀", "ab"),
        (3, "a😀b", "a😀"),
        (3, "abcd", "abc"),
        (9, "ab😀", "ab😀"),
    ],
)
def test_a_cut_counts_utf_16_units_and_keeps_no_half_of_a_character(kept, text, cut):
    assert normal.cut(kept)(text) == cut


@pytest.mark.parametrize(("length", "shown"), [(None, "ab"), (4, "ab"), (3, "ab😀"), (2, "ab😀")])
def test_a_column_that_is_not_longer_than_its_cut_stays_whole(length, shown):
    column = Column(source="v", name="v", type="varchar", mask="truncate", truncate_to=3)
    table = make_table(columns=(Column(source="id", name="id", type="integer"), column))
    compared = compared_columns(table, make_plan(table), {"v": length})[1]
    assert compared.source_normal("ab😀") == compared.show("ab😀") == shown
    assert ("left(" in compared.source) is (shown == "ab")
