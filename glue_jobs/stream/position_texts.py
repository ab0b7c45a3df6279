"""Positions of a block of events, made without a Python object for each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdclake.debezium.position import EPOCH_DIGITS, LSN_DIGITS
from cdclake.jobs.stream.block_arrays import Numbers

_PAIRS = np.array([f"{value:02x}".encode() for value in range(256)], "S2").view(np.uint16)
_LENGTH = EPOCH_DIGITS + 1 + LSN_DIGITS + 1 + 1 + 1 + LSN_DIGITS + 1 + LSN_DIGITS


def position_texts(
    epoch: Numbers, prev: Numbers, phase: Numbers, lsn: Numbers, offset: Numbers
) -> pa.Array:
    """Return the texts of `position_text` for arrays of equal length; no number is negative."""
    count = len(epoch)
    texts = np.full((count, _LENGTH), ord("."), np.uint8)
    at = 0
    for numbers, digits in ((epoch, EPOCH_DIGITS), (prev, LSN_DIGITS)):
        texts[:, at : at + digits] = _hex(numbers, digits)
        at += digits + 1
    texts[:, at] = phase + ord("0")
    at += 2
    for numbers in (lsn, offset):
        texts[:, at : at + LSN_DIGITS] = _hex(numbers, LSN_DIGITS)
        at += LSN_DIGITS + 1
    ends = np.arange(count + 1, dtype=np.int32) * _LENGTH
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _hex(numbers: Numbers, digits: int) -> npt.NDArray[np.uint8]:
    octets = numbers.astype(">u8").view(np.uint8).reshape(len(numbers), 8)
    pairs = _PAIRS[octets[:, 8 - digits // 2 :]]
    digits_of: npt.NDArray[np.uint8] = pairs.view(np.uint8).reshape(len(numbers), digits)
    return digits_of
