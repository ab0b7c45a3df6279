"""Memory of a file's rows: the sizes of all values, however small the file is."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdclake.jobs.iceberg import decoded_size
from cdclake.jobs.iceberg.parquet_file import encode


def file_of(**columns: pa.Array) -> pa.Buffer:
    return encode(pa.table(columns))[0]


def decoded_bytes(content: pa.Buffer, *, enough: int) -> int:
    footer = pq.read_metadata(pa.BufferReader(content))
    groups = range(footer.num_row_groups)
    return decoded_size.decoded_bytes(pa.BufferReader(content), footer, groups, enough=enough)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_decoded_bytes_counts_a_repeated_value_for_each_row(kind: pa.DataType) -> None:
    values = pa.array(["x" * 100_000, None, "y" * 10] * 1000, kind)
    content = file_of(id=pa.array(range(3000)), v=values)
    assert content.size < 50_000
    of_values = 1000 * 100_010
    assert of_values <= decoded_bytes(content, enough=10**6) <= of_values + 100_000


def test_decoded_bytes_counts_values_that_are_not_in_a_dictionary() -> None:
    content = file_of(v=pa.array([f"{n:0200}" for n in range(2000)]))
    assert content.size < 200_000 < 400_000 <= decoded_bytes(content, enough=0) < 500_000


def test_decoded_bytes_counts_values_after_a_full_dictionary() -> None:
    """The writer ends a dictionary at 1 MiB, and goes on without it."""
    values = ["a" * 1000] * 1000 + [f"{n:01000}" for n in range(3000)]
    size = decoded_bytes(file_of(v=pa.array(values)), enough=3_900_000)
    assert size == 4_000_000


def test_decoded_bytes_reads_no_pages_that_need_too_much_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pages after a full dictionary are small only in the file, where they are compressed."""
    values = ["a" * 1000] * 1000 + [f"{n:01000}" for n in range(20_000)]
    content = file_of(v=pa.array(values))
    assert content.size < 1_000_000
    monkeypatch.setattr(pq, "ParquetFile", None)
    assert 10_000_000 < decoded_bytes(content, enough=10_000_000) < 21_500_000


def test_decoded_bytes_takes_a_bound_that_is_small_enough() -> None:
    content = file_of(v=pa.array(["abc", "def"] * 500))
    exact = decoded_bytes(content, enough=1000)
    assert exact == 3000
    assert exact < decoded_bytes(content, enough=10**6) <= 10**6
