"""Two LSNs of `source.sequence`, read from all texts of a block at once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdclake.jobs.stream.source_sequences import read_sequences

_RIGHT = re.compile(r'\[(?:null|"([0-9]{1,18})"),"([0-9]{1,18})"\]')
_PIECES = ('["', '","', '"]', "null", "[", "]", ",", '"', "-", " ", "٣", "7", "0", "9" * 18)

numbers = st.integers(0, 10**18 - 1)
right = st.builds('["{}","{}"]'.format, numbers, numbers)
first = st.builds('[null,"{}"]'.format, numbers)
wrong = st.lists(st.sampled_from(_PIECES), max_size=7).map("".join)


def expected(text: str) -> tuple[int, int, bool]:
    match = _RIGHT.fullmatch(text)
    return (int(match[1] or 0), int(match[2]), True) if match else (0, 0, False)


def read(texts: list[str]) -> list[tuple[int, int, bool]]:
    before, lsns, right = read_sequences(texts)
    return [(int(b), int(n), bool(r)) for b, n, r in zip(before, lsns, right, strict=True)]


@given(st.lists(right, max_size=20))
def test_two_numbers_in_every_text(texts: list[str]) -> None:
    assert read(texts) == [expected(text) for text in texts]
    assert all(is_right for *_, is_right in read(texts))


@given(st.lists(right | first | wrong, max_size=20))
def test_each_text_is_read_alone_if_some_lack_a_number_or_are_wrong(texts: list[str]) -> None:
    assert read(texts) == [expected(text) for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        ['["1","2"', '["3","4"]]'],
        ['"["1","2"', '["3","4"]'],
        ['["1","2"]', ""],
        ['["12",""]', '["","34"]'],
        ['["1","2"]["3","4"]', "         "],
        ['["1","2"]', '["' + "1" * 19 + '","2"]'],
        ['["1";"2"]'],
        ['("1","2"]'],
        ['["1","2")'],
        ['["1" "2"]'],
        ['["-1","2"]'],
        ['["1","2 "]'],
    ],
)
def test_texts_that_are_right_together_but_not_alone(texts: list[str]) -> None:
    assert read(texts) == [expected(text) for text in texts]
    assert not all(is_right for *_, is_right in read(texts))
