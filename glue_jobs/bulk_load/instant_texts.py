"""Texts of instants as the changelog has them, made without a Python object for each.

Arrow's `strftime` is slower.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PAIRS = np.array([f"{value:02d}".encode() for value in range(100)], "S2").view(np.uint16)
_FORM = np.frombuffer(b"0000-00-00T00:00:00.000000Z", np.uint8)
_MICROS_OF_DAY = 86_400_000_000
YEAR_1_US, YEAR_10000_US = -62_135_596_800_000_000, 253_402_300_800_000_000  # since 1970

Numbers = npt.NDArray[np.int64]


def instant_texts(micros: Numbers) -> pa.Array:
    """Return ISO 8601 texts with six digits of a second, of microseconds since 1970 in UTC.

    All are from `YEAR_1_US` on and before `YEAR_10000_US`: other years have other texts.
    """
    count = len(micros)
    days, in_day = np.divmod(micros, _MICROS_OF_DAY)
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    month_numbers = months.astype(np.int64)
    years, month = np.divmod(month_numbers, 12)
    years += 1970
    seconds, fraction = np.divmod(in_day, 1_000_000)
    texts = np.empty((count, len(_FORM)), np.uint8)
    texts[:] = _FORM
    for at, numbers in (
        (0, years // 100),
        (2, years % 100),
        (5, month + 1),
        (8, (dates - months.astype("datetime64[D]")).astype(np.int64) + 1),
        (11, seconds // 3600),
        (14, seconds // 60 % 60),
        (17, seconds % 60),
        (20, fraction // 10_000),
        (22, fraction // 100 % 100),
        (24, fraction % 100),
    ):
        texts[:, at : at + 2] = _PAIRS[numbers].view(np.uint8).reshape(count, 2)
    ends = np.arange(count + 1, dtype=np.int32) * len(_FORM)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(texts)]
    )
