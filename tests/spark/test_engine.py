"""The engine on real Spark and Iceberg: order, deletes, values carried, replay."""

import pytest

from cdclake.plan import Column
from glue_jobs.state.apply import apply_changes, ingested_through, rebuild_state
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark):
    return Engine(spark)


def test_the_newest_change_wins_in_one_batch_and_over_batches(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 5, v="a"), e("u", 20, 15, v="b"))
    assert engine.state() == {1: ("b", None)}
    engine.run(e("u", 30, 25, v="c"))
    assert engine.state() == {1: ("c", None)}
    assert [row["cdc_op"] for row in engine.log()] == ["c", "u", "u"]


def test_commit_order_wins_over_a_higher_lsn_and_over_any_clock(engine: Engine) -> None:
    e = engine.event
    engine.run(e("u", 20, 100, v="x", ts=2_000_000_000_000_000), e("u", 30, 90, v="y", ts=1))
    assert engine.state() == {1: ("y", None)}


def test_a_snapshot_row_loses_to_the_transaction_that_was_open_over_it(engine: Engine) -> None:
    e = engine.event
    engine.run(e("r", None, 130, v="a"))
    engine.run(e("u", None, 100, v="b"))
    assert engine.state() == {1: ("b", None)}


def test_a_deleted_row_does_not_come_back(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 5, v="a"), e("d", 20, 15))
    engine.run(e("u", 15, 12, v="late"))
    assert engine.state() == {}
    engine.run(e("c", 30, 25, v="again"))
    assert engine.state() == {1: ("again", None)}


def test_late_real_value_is_kept_beside_a_newer_placeholder(engine: Engine) -> None:
    """T13: c@10(big=A), u@30(placeholder), late u@20(big=B) must end with B."""
    e = engine.event
    engine.run(e("c", 10, 10, v="1", big="A"))
    engine.run(e("u", 30, 30, v="3", big=...))
    assert engine.state() == {1: ("3", "A")}
    engine.run(e("u", 20, 20, v="2", big="B"))
    assert engine.state() == {1: ("3", "B")}


def test_a_creation_in_between_takes_the_value(engine: Engine) -> None:
    """T14: as T13, with a creation at 25 in between."""
    e = engine.event
    engine.run(e("u", 30, 30, v="3", big=...))
    row = engine.lake.read(engine.table.name).collect()[0]
    assert row["cdc_toast_missing"] == ["big"]
    engine.run(e("c", 25, 25, v="2", big="C"), e("u", 20, 20, v="1", big="B"))
    assert engine.state() == {1: ("3", "C")}


@pytest.mark.parametrize("batches", [1, 2], ids=["one batch", "two batches"])
def test_a_changed_key_takes_its_unchanged_value_along(engine: Engine, batches: int) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="1", big="A"))
    change = [e("d", 20, 20, tx=7), e("c", 20, 20, id=2, v="2", big=..., tx=7)]
    if batches == 1:
        engine.run(*change)
    else:
        engine.run(change[0])
        engine.run(change[1])
    assert engine.state() == {2: ("2", "A")}


def test_a_chain_of_changed_keys_takes_the_value_along(engine: Engine) -> None:
    e = engine.event
    engine.run(
        e("c", 10, 10, v="1", big="A"),
        e("d", 20, 20, tx=7), e("c", 20, 20, id=2, v="2", big=..., tx=7),
        e("d", 20, 21, id=2, tx=7), e("c", 20, 21, id=3, v="3", big=..., tx=7),
    )  # fmt: skip
    assert engine.state() == {3: ("3", "A")}


def test_a_truncate_takes_what_lies_below_it_whatever_comes_when(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"))
    engine.run(e("t", 20, 20, id=None), e("c", 30, 30, id=3, v="new"))
    assert engine.state() == {3: ("new", None)}
    engine.run(e("c", 12, 12, id=4, v="late"))
    assert engine.state() == {3: ("new", None)}
    assert rebuild_state(engine.lake, engine.table) == 1


def test_a_replayed_batch_changes_nothing(engine: Engine) -> None:
    e = engine.event
    batch = [e("c", 10, 10, v="a"), e("u", 20, 20, v="b"), e("d", 30, 30, id=9)]
    engine.run(*batch, offset=0)
    engine.run(*batch, offset=0)
    engine.run(*batch[1:], e("u", 40, 40, v="c"), offset=1)
    assert engine.state() == {1: ("c", None)}
    assert len(engine.log()) == 4


def test_a_suffix_that_the_connector_sent_again_stands_once_in_the_log(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("u", 20, 20, v="b"), e("u", 30, 30, v="c"))
    engine.run(e("u", 20, 20, v="b"), e("u", 30, 30, v="c"), e("u", 40, 40, v="d"))
    assert [row["cdc_lsn"] for row in engine.log()] == [10, 20, 30, 40]
    engine.run(e("u", 50, 50, v="e"), e("u", 50, 50, v="e"))
    assert [row["cdc_lsn"] for row in engine.log()] == [10, 20, 30, 40, 50]
    assert engine.state() == {1: ("e", None)}


def test_rows_of_one_copy_share_an_lsn_and_all_stay(engine: Engine) -> None:
    e = engine.event
    engine.run(*(e("c", 10, 10, id=n, v=str(n)) for n in range(5)))
    engine.run(*(e("c", 10, 10, id=n, v=str(n)) for n in range(5, 8)))
    assert len(engine.state()) == len(engine.log()) == 8


def test_refused_events_are_kept_with_bytes_and_reason_and_the_rest_goes_on(engine: Engine) -> None:
    e = engine.event
    wrong_type = e("c", 10, 10, id=2, v="x")
    wrong_type["value"]["after"]["id"] = "2"
    no_key = e("c", 10, 11, id=3, v="x")
    no_key["key"] = {"id": None}
    outcome = engine.run(
        (b'{"id": 1}', b"{rubbish"), wrong_type, no_key,
        (b'{"id": 1}', None), e("c", 10, 12, id=4, v="good"),
    )  # fmt: skip
    assert (outcome.appended, outcome.quarantined) == (1, 3)
    assert engine.state() == {4: ("good", None)}
    reasons = [row["reason"].split(":")[0] for row in engine.quarantined()]
    assert reasons == ["UNREADABLE_VALUE", "UNREADABLE_VALUE", "NULL_KEY"]
    assert bytes(engine.quarantined()[0]["value"]) == b"{rubbish"


def test_a_number_that_its_type_cannot_hold_is_refused_not_rounded(spark) -> None:
    columns = (
        Column(source="id", name="id", type="bigint"),
        Column(source="v", name="v", type="numeric(5,2)"),
        Column(source="big", name="big", type="text"),
    )
    engine = Engine(spark, plan_of(columns=columns))
    e = engine.event
    outcome = engine.run(
        e("c", 10, 10, id=1, v="123.45"), e("c", 10, 11, id=2, v="1.239"),
        e("c", 10, 12, id=3, v="NAN"), e("c", 10, 13, id=4, v="12345.00"),
    )  # fmt: skip
    assert (outcome.appended, outcome.quarantined) == (1, 3)
    assert str(engine.state()[1][0]) == "123.45"


def test_soft_deletes_keep_the_last_values(spark) -> None:
    engine = Engine(spark, plan_of(deletes="soft"))
    e = engine.event
    engine.run(e("c", 10, 10, v="a", big="B"), e("d", 20, 20))
    [row] = engine.lake.read(engine.table.name).collect()
    assert (row["v"], row["big"], row["cdc_deleted"]) == ("a", "B", True)
    engine.run(e("c", 30, 30, v="again"))
    assert engine.state() == {1: ("again", None)}


def test_a_state_that_was_left_behind_catches_up_from_the_log(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    assert not engine.run(e("u", 20, 20, v="b"), apply_now=False).applied
    assert not engine.run(e("c", 30, 30, id=2, v="c"), apply_now=False).applied
    assert engine.state() == {1: ("a", None)}
    engine.run(e("u", 40, 40, v="d"))
    assert engine.state() == {1: ("d", None), 2: ("c", None)}


def test_another_job_holding_the_table_delays_its_state_not_its_log(engine: Engine) -> None:
    e = engine.event
    with engine.leases.hold(engine.table.name):
        assert not engine.run(e("c", 10, 10, v="a")).applied
    assert len(engine.log()) == 1
    assert engine.state() == {}
    apply_changes(engine.lake, engine.table, through=ingested_through(engine.lake, engine.table))
    assert engine.state() == {1: ("a", None)}


def test_a_new_epoch_sweeps_rows_that_its_snapshot_does_not_have(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="gone in the gap"))
    engine.run(e("r", None, 5, v="snapshot", epoch=2), epoch=2)
    assert engine.state() == {1: ("snapshot", None)}
    engine.run(e("u", 90, 90, id=2, v="old record read again"), epoch=2)
    assert engine.state() == {1: ("snapshot", None)}


def test_the_state_rebuilt_from_the_log_is_the_same(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="1", big="A"), e("c", 10, 11, id=2, v="x", big="Y"))
    engine.run(e("u", 30, 30, v="3", big=...), e("d", 30, 31, id=2))
    before = engine.state()
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == before == {1: ("3", "A")}


def test_columns_may_be_named_like_anything_of_ours_that_is_not_reserved(spark) -> None:
    names = ("id", "v", "big", "key", "value", "headers", "topic", "partition", "newest", "held")
    columns = tuple(
        Column(source=name, name=name, type="bigint" if name == "id" else "text") for name in names
    )
    engine = Engine(spark, plan_of(columns=columns))
    created = engine.event("c", 10, 10, v="a", big="b")
    created["value"]["after"] |= {name: name for name in names[3:]}
    engine.run(created)
    engine.run(engine.event("u", 20, 20, v="c", big=...))
    [row] = engine.lake.read(engine.table.name).collect()
    assert (row["v"], row["big"], row["value"]) == ("c", "b", None)


def test_a_chain_of_changed_keys_over_batches_takes_the_value_along(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="1", big="A"))
    engine.run(e("d", 20, 20, tx=7), e("c", 20, 20, id=2, v="2", big=..., tx=7))
    engine.run(e("d", 30, 30, id=2, tx=8), e("c", 30, 30, id=3, v="3", big=..., tx=8))
    assert engine.state() == {3: ("3", "A")}


def test_a_key_used_again_does_not_bring_back_its_earlier_rows_value(engine: Engine) -> None:
    e = engine.event
    engine.run(
        e("c", 10, 10, v="1", big="A"),
        e("d", 20, 20, tx=7), e("c", 20, 20, id=2, v="2", big=..., tx=7),
        e("u", 30, 30, id=2, v="3", big="B"),
        e("d", 40, 40, id=2, tx=8), e("c", 40, 40, id=1, v="4", big=..., tx=8),
        e("d", 50, 50, tx=9), e("c", 50, 50, id=3, v="5", big=..., tx=9),
    )  # fmt: skip
    assert engine.state() == {3: ("5", "B")}
