"""Values that were not sent although the declared replica identity sends all."""

from dataclasses import replace

import pytest

from cdclake.debezium.changelog_rows import LogRows, Place, read_event
from cdclake.debezium.connector import connector_config
from cdclake.debezium.refusals import RefusedEvent
from cdclake.jobs.stream.avro_values import without_refusal
from cdclake.jobs.stream.changelog_columns import REFUSAL
from tests.recorded.decoders import fast_rows, firehose_row, slow_rows
from tests.recorded.recording import Recording
from tests.unit.debezium.test_oversized import ADDRESS, JAVA
from tests.unit.jobs.test_decoders_agree import agree, plan_of, record

RECORDING = Recording.load("toast")
UNPROTECTED = RECORDING.plan.table("public.unprotected")


@pytest.mark.parametrize(
    ("column", "has_placeholder"), [("c_text", True), ("c_smallints", False), ("c_bit", False)]
)
def test_a_value_that_was_not_sent_is_no_null(column: str, has_placeholder: bool) -> None:
    """The last event is from after the source's identity was changed."""
    kept = tuple(c for c in UNPROTECTED.columns if c.name in ("id", "v", column))
    rows = LogRows(replace(UNPROTECTED, columns=kept), RECORDING.plan)
    values = [record.value for record in RECORDING.of_topic(UNPROTECTED.topic)]
    events = [read_event(value) for value in values if value is not None]
    *before, last = [event for event in events if event is not None]
    assert [rows.row(event, Place(0, 0), 0)["cdc_op"] for event in before] == ["r", "u"]
    if has_placeholder:
        assert rows.row(last, Place(0, 0), 0)["cdc_unavailable"] == [column]
        return
    with pytest.raises(RefusedEvent, match=f"UNSENT_VALUE: '{column}'"):
        rows.row(last, Place(0, 0), 0)


@pytest.mark.parametrize("column", ["c_smallints", "c_bit"])
def test_a_value_that_is_masked_with_null_is_never_unsent(column: str) -> None:
    kept = (
        replace(c, mask="null" if c.name == column else None)
        for c in UNPROTECTED.columns
        if c.name in ("id", "v", column)
    )
    table = replace(UNPROTECTED, columns=tuple(kept))
    last = [record for record in RECORDING.of_topic(UNPROTECTED.topic) if record.value][-1]
    assert last.value is not None
    event = read_event(last.value)
    assert event is not None and event["after"][column] is None
    assert LogRows(table, RECORDING.plan).row(event, Place(0, 0), 0)[column] is None
    sent = [(last.key, last.value)]
    for found in (
        slow_rows(sent, table, RECORDING.plan),
        fast_rows(sent, table, RECORDING.plan)[0],
    ):
        [row] = found
        assert row is not None and (row[column], row[REFUSAL]) == (None, None)


@pytest.mark.parametrize(
    ("before", "refusal"),
    [(b'{"id":1,"name":"","small":null}', None), (b"null", "UNSENT_VALUE: 'small'")],
)
def test_a_row_before_without_values_proves_that_all_were_sent(
    before: bytes, refusal: str | None
) -> None:
    """OversizedRecords empties the row before an update, so that the update fits into Kafka."""
    columns = (("name", "text"), ("small", "smallint[]"))
    table, plan = plan_of(*columns, replica_identity="full")
    key, value = record(name='"x"', small="null")
    assert value is not None
    sent = (key, value.replace(b'"before":null', b'"before":' + before))
    assert agree([sent], table, plan) == (refusal is not None)
    [row] = slow_rows([sent], table, plan)
    assert row is not None
    assert (row["name"], row["small"]) == ("x", None)
    found = firehose_row(sent, 0, table, plan)
    if refusal is None:
        assert row[REFUSAL] is None and isinstance(found, dict)
    else:
        assert row[REFUSAL].startswith(refusal) and str(found).startswith(refusal)


REASON = "UNCONVERTED_VALUE: no value of NOT NULL small"


@pytest.mark.parametrize("identity", ["default", "full"])
@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_a_missing_value_that_is_not_null_is_refused_by_its_mark(op: str, identity: str) -> None:
    """As the connector's transform writes it (java/test, UnconvertedValuesTest)."""
    table, plan = plan_of(("small", "smallint[]"), replica_identity=identity)
    mark = f',"cdc_refused":{{"reason":"{REASON}"}}'
    key, value = record(op=op, small="null", extra=mark)
    for each in (value, without_refusal(value)):  # a replay finds it as well
        agree([(key, each)], table, plan)
        [row] = slow_rows([(key, each)], table, plan)
        assert row is not None and row[REFUSAL] == REASON
        assert firehose_row((key, each), 0, table, plan) == REASON


@pytest.mark.parametrize("op", ["u", "d"])
def test_a_row_before_without_a_value_that_is_not_null_is_accepted(op: str) -> None:
    table, plan = plan_of(("small", "smallint[]"), replica_identity="full")
    key, value = record(op=op, small="null" if op == "d" else "[7]", extra=',"cdc_refused":null')
    assert value is not None
    sent = (key, value.replace(b'"before":null', b'"before":{"id":1,"small":null}'))
    agree([sent], table, plan)
    [row] = slow_rows([sent], table, plan)
    assert row is not None and row[REFUSAL] is None
    assert isinstance(firehose_row(sent, 0, table, plan), dict)


def test_the_connector_marks_what_debezium_cannot_convert() -> None:
    _, plan = plan_of()
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="", max_queue_bytes=1)
    for name in (f"{config['post.processors']}.type", "transforms.unconverted.type"):
        assert (JAVA / f"{config[name].rpartition('.')[2]}.java").exists()
    assert "unconverted" in config["transforms"].split(",")
