"""Index of many texts, to find those that occur in some bytes.

Thousands of alternatives of a regular expression are tried one by one at every byte. Here the first
bytes of each text are looked up instead, for long contents all at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping

import numpy as np

_HEAD = 6  # bytes of a text that are looked up; no text is shorter
_SHORT_CONTENT = 400  # bytes: below it a loop is faster


class TextIndex:
    """Texts in bytes, with the name of each."""

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names = names
        self._by_head: dict[bytes, list[bytes]] = {}
        for text in names:
            self._by_head.setdefault(text[:_HEAD], []).append(text)
        heads = [int.from_bytes(head, "big") for head in self._by_head]
        self._heads = np.array(sorted(heads), np.uint64)
        self._sorted = sorted(names)

    def names_in(self, content: bytes) -> set[str]:
        """Return the names of the texts that occur in the content."""
        return {self._names[content[start:end]] for start, end in self.places(content)}

    def name(self, text: bytes) -> str:
        """Return the name of one of the texts."""
        return self._names[text]

    def places(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each occurrence of a text."""
        if not self._by_head:
            return
        for start in self._candidates(content):
            for text in self._by_head.get(content[start : start + _HEAD], ()):
                if content.startswith(text, start):
                    yield start, start + len(text)

    def beginning_with(self, start: bytes) -> Iterator[bytes]:
        """Yield the texts that begin with these bytes."""
        for text in self._sorted[bisect_left(self._sorted, start) :]:
            if not text.startswith(start):
                return
            yield text

    def _candidates(self, content: bytes) -> Iterator[int]:
        """Yield the places where the first bytes of a text are."""
        if len(content) < _SHORT_CONTENT:
            yield from range(len(content) - _HEAD + 1)
            return
        octets = np.frombuffer(content, np.uint8)
        last = len(octets) - _HEAD + 1
        numbers = np.zeros(last, np.uint64)
        for at in range(_HEAD):
            numbers <<= np.uint64(8)
            numbers |= octets[at : at + last]
        found = np.searchsorted(self._heads, numbers)
        found[found == len(self._heads)] = 0
        yield from np.flatnonzero(self._heads[found] == numbers).tolist()
