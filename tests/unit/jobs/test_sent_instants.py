"""Instants of a load: a key's text is the source's own, other columns are sent as stored."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from cdclake.jobs.bulk_load.sent_column import SentColumn
from cdclake.plan import Column
from cdclake.postgres.sent_values import is_sent_as_stored, sent_value
from tests.unit.postgres.tables import declared

TABLE = declared(
    ("id", "integer"), ("at", "timestamptz"), ("seen", "timestamptz"), ("short", "timestamptz(3)"),
    key=("id", "at"),
)  # fmt: skip
BY_NAME: dict[str, Column] = {column.name: column for column in TABLE.columns}
MOMENT = datetime(2024, 1, 1, 22, 4, 5, 123_000, UTC)


@pytest.mark.parametrize(
    ("name", "is_stored"), [("id", False), ("at", False), ("seen", True), ("short", False)]
)
def test_an_instant_with_its_own_digits_is_not_sent_as_stored(name: str, is_stored: bool) -> None:
    assert is_sent_as_stored(BY_NAME[name], TABLE) is is_stored
    assert ("pg_attribute" in sent_value(BY_NAME[name], TABLE)) is (name in ("at", "short"))


@pytest.mark.parametrize("name", ["at", "short"])
def test_a_text_of_any_precision_is_proved_and_kept(name: str) -> None:
    texts = ["2024-01-01T22:04:05.123Z", "2024-01-01T22:04:05.123000Z", "-0043-03-15T01:02:03.5Z"]
    seconds = ["2024-01-01T22:04:05Z", "1969-12-31T23:59:59Z"]
    column = SentColumn(BY_NAME[name], TABLE, has_state=True)
    for sent in (texts[:2], seconds, texts):
        read = column.read(pa.array(sent))
        proved = [True] * len(sent) if read.proved is None else read.proved.to_pylist()
        assert read.log.to_pylist() == sent
        assert proved[:2] == [True, True]
    assert column.read(pa.array(texts[:2])).state.to_pylist() == [MOMENT, MOMENT]
    assert column.read(pa.array(seconds)).state[0].as_py() == MOMENT.replace(microsecond=0)
