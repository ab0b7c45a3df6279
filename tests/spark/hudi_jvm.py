"""Hudi in the tests: its jars, readers, and a process with a JVM that has them.

Hudi needs Kryo and its jars from the start of a session, which the other tests must not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.conftest import PROJECT

JARS = PROJECT / "jars" / "hudi"
needs_hudi = pytest.mark.skipif(not JARS.is_dir(), reason="no jars/hudi: run `make hudi-jars`")


def rust_rows(
    folder: str, columns: Sequence[str], options: Mapping[str, str] | None = None, **read: Any
) -> Iterator[tuple[Any, ...]]:
    """The rows of a Hudi table as hudi-rs reads them."""
    from hudi import HudiReadOptions, HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(folder).with_options(dict(options or {})).build()
    for batch in table.read(HudiReadOptions(**read)):
        for row in pa.record_batch(batch).to_pylist():
            yield tuple(row[column] for column in columns)
