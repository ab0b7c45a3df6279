"""Parser of `source.sequence`, Debezium's text with two LSNs of an event.

They are the LSN of the last commit before, which may be null, and the event's: `["10","12"]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cdclake.jobs.stream.block_arrays import Flags, Numbers

_SEQUENCE = re.compile(r'\[(?:null|"([0-9]{1,18})"),"([0-9]{1,18})"\]').fullmatch
_MOST_DIGITS = 18
_AROUND = len('["",""]')  # characters of a text that are no digits


def read_sequences(texts: Sequence[str]) -> tuple[Numbers, Numbers, Flags]:
    """Return of each text the last commit, 0 for null, the event's LSN, and whether it is right.

    A text that is not right gives zeros.
    """
    found = _pairs_of_numbers(pa.array(texts, pa.string()))
    if found is not None:
        return found[:, 0], found[:, 1], np.ones(len(texts), bool)
    matches = [_SEQUENCE(text) for text in texts]
    pairs = [(int(m[1] or 0), int(m[2])) if m else (0, 0) for m in matches]
    found = np.array(pairs, np.int64).reshape(len(texts), 2)
    return found[:, 0], found[:, 1], np.array([m is not None for m in matches], bool)


def _pairs_of_numbers(texts: pa.StringArray) -> Numbers | None:
    """Return the pairs if every text has two numbers; computed on the characters of all of them."""
    count = len(texts)
    ends = np.frombuffer(texts.buffers()[1], np.int32, count + 1)
    if not count or np.diff(ends).min() < _AROUND:
        return None
    characters = np.frombuffer(texts.buffers()[2] or b"", np.uint8, ends[-1])
    is_digit = (characters >= ord("0")) & (characters <= ord("9"))
    quotes = np.flatnonzero(characters == ord('"'))
    if len(quotes) != 4 * count or len(characters) - is_digit.sum() != _AROUND * count:
        return None
    starts, ends, quotes = ends[:-1], ends[1:], quotes.reshape(count, 4)
    first, second = quotes[:, 1] - quotes[:, 0] - 1, quotes[:, 3] - quotes[:, 2] - 1
    lengths = np.stack([first, second], axis=1)
    is_right = (
        (quotes[:, 0] == starts + 1)
        & (quotes[:, 2] == quotes[:, 1] + 2)
        & (quotes[:, 3] == ends - 2)
        & (characters[starts] == ord("["))
        & (characters[quotes[:, 1] + 1] == ord(","))
        & (characters[ends - 1] == ord("]"))
    )
    if not is_right.all() or lengths.min() < 1 or lengths.max() > _MOST_DIGITS:
        return None
    bounds = np.zeros(2 * count + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    digits = [None, pa.py_buffer(bounds), pa.py_buffer(characters[is_digit])]
    numbers = pa.Array.from_buffers(pa.string(), 2 * count, digits).cast(pa.int64())
    pairs: Numbers = numbers.to_numpy().reshape(count, 2)
    return pairs
