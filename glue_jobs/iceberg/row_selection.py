"""Selection of rows of Arrow arrays and tables; what is selected as a whole is not copied."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


class RowNumbers:
    """Row numbers of columns with `count` rows, in the wanted order."""

    def __init__(self, numbers: npt.NDArray[np.int64], count: int) -> None:
        self._numbers = pa.array(numbers)
        self._is_all = len(numbers) == count and np.array_equal(numbers, np.arange(count))

    def take(self, values: Any) -> Any:
        """Return these rows of an array or a table."""
        return values if self._is_all else values.take(self._numbers)


def filtered(rows: Rows, wanted: Any) -> Rows:
    """Return the rows for which `wanted` is true; NULL is not."""
    return rows if pc.all(wanted, skip_nulls=False).as_py() else rows.filter(wanted)
