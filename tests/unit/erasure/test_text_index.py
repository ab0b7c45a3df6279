"""The index finds what a search for each text finds, in short and in long contents."""

from __future__ import annotations

import random

import pytest

from cdclake.jobs.erasure.text_index import TextIndex


@pytest.mark.parametrize("length", [5, 6, 50, 399, 400, 5000])
def test_it_finds_every_occurrence(length: int) -> None:
    chosen = random.Random(length)
    texts = {bytes(chosen.choices(b"abc", k=chosen.randint(6, 9))): str(n) for n in range(60)}
    index = TextIndex(texts)
    for _ in range(20):
        content = bytes(chosen.choices(b"abc", k=length))
        expected = {
            (at, at + len(text)) for text in texts for at in range(length)
            if content.startswith(text, at)
        }  # fmt: skip
        assert set(index.places(content)) == expected
        assert index.names_in(content) == {texts[content[a:b]] for a, b in expected}


def test_texts_at_both_ends_and_none_at_all() -> None:
    index = TextIndex({b"\xff" * 6: "last", b"\x00" * 7: "first"})
    content = b"\x00" * 7 + b"x" * 500 + b"\xff" * 6
    assert list(index.places(content)) == [(0, 7), (507, 513)]
    assert TextIndex({}).names_in(content) == set()
    assert list(index.beginning_with(b"\xff")) == [b"\xff" * 6]
