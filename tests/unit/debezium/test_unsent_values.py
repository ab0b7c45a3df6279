"""Values that were not sent although the declared replica identity sends all."""

from dataclasses import replace

import pytest

from cdclake.debezium.changelog_rows import LogRows, Place, read_event
from cdclake.debezium.refusals import RefusedEvent
from tests.recorded.recording import Recording

RECORDING = Recording.load("toast")
UNPROTECTED = RECORDING.plan.table("public.unprotected")


@pytest.mark.parametrize("column", ["c_text", "c_smallints", "c_bit"])
def test_a_value_that_was_not_sent_is_no_null(column: str) -> None:
    """With and without a placeholder; the last event is from after the identity was changed."""
    kept = tuple(c for c in UNPROTECTED.columns if c.name in ("id", "v", column))
    rows = LogRows(replace(UNPROTECTED, columns=kept), RECORDING.plan)
    values = [record.value for record in RECORDING.of_topic(UNPROTECTED.topic)]
    events = [read_event(value) for value in values if value is not None]
    *before, last = [event for event in events if event is not None]
    assert [rows.row(event, Place(0, 0), 0)["cdc_op"] for event in before] == ["r", "u"]
    with pytest.raises(RefusedEvent, match=f"UNSENT_VALUE: '{column}'"):
        rows.row(last, Place(0, 0), 0)
