"""Columns that change in the source: dropped, renamed, given another type, added again."""

import json
import struct
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.field_values import Digits, reader
from cdclake.debezium.refusals import RefusedEvent
from cdclake.errors import TableError
from cdclake.iceberg.schemas import changes_schema, state_schema
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.apply_changes import apply_table
from cdclake.jobs.maintenance.table_maintenance import maintain_table
from cdclake.jobs.rebuild_tables import rebuild_table
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.jobs.stream.schema_drift import describe_drift
from cdclake.jobs.stream.table_stream import Outcome
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Column
from tests.spark.events import RECORD, Engine, plan_of

pytestmark = pytest.mark.spark

ID = Column(source="id", name="id", type="bigint")
MAIL = Column(source="mail", name="mail", type="text")
REAL = Column(source="n", name="n", type="real")
RENAMED = Column(source="email", name="mail", type="text", renamed_from=("mail",))


def table_of(spark: SparkSession, *columns: Column, **table: Any) -> Engine:
    return Engine(spark, plan_of(columns=(ID, *columns), **table))


def event(engine: Engine, op: str, lsn: int, after: dict[str, Any] | None, **how: Any) -> Any:
    """An event of this row, with just these fields, as compact as Debezium writes it."""
    made = engine.event(op, lsn, lsn, id=how.pop("id", 1), **how)
    if after is not None:
        made["value"]["after"] = {"id": made["key"]["id"], **after}
    key, value = (json.dumps(made[part], separators=(",", ":")) for part in ("key", "value"))
    return key.encode(), value.encode()


def declare(engine: Engine, *columns: Column) -> None:
    """The file declares these columns from now on, and the stream takes that up."""
    table = replace(engine.table, columns=(ID, *columns))
    engine.declare(replace(engine.plan, tables=(table,)))
    for schema in (changes_schema(table, engine.plan), state_schema(table, engine.plan)):
        engine.lake.create(schema)


def rows(engine: Engine, *names: str) -> dict[int, tuple[Any, ...]]:
    """Live rows of the state, by id."""
    found = engine.lake.read(engine.table.name).where("NOT cdc_deleted").collect()
    return {row["id"]: tuple(row[name] for name in names) for row in found}


def stopped_at(outcome: Outcome) -> int | None:
    """The offset from which the table's events do not fit; None if they all do."""
    assert outcome.drift is not None
    return outcome.drift.stop_offsets.get(0)


# --- a column that is gone -----------------------------------------------------------------------


def test_a_table_stops_before_the_first_event_that_lacks_a_declared_column(spark) -> None:
    engine = table_of(spark, MAIL)
    batch = [
        event(engine, "c", 10, {"mail": "a"}),
        event(engine, "u", 20, {}),
        event(engine, "u", 30, {}),
    ]
    outcome = engine.run(*batch)
    assert (stopped_at(outcome), outcome.taken, outcome.quarantined) == (1, {0: 1}, 0)
    assert outcome.drift is not None and outcome.drift.gone == ("mail",)
    message, remedy = describe_drift(engine.table, outcome.drift)
    assert "no longer have the column 'mail'" in message
    assert "renamed_from: mail" in remedy
    assert f'tables."{engine.table.source}".columns.mail' in remedy
    assert rows(engine, "mail") == {1: ("a",)}
    again = engine.run(*batch[1:], offset=1)  # nothing is mended
    assert (stopped_at(again), again.taken, len(engine.log())) == (1, {}, 1)

    declare(engine)
    assert engine.run(*batch[1:], offset=1).taken == {0: 3}
    assert [row["cdc_lsn"] for row in engine.log()] == [10, 20, 30]
    assert [row["cdc_dropped_mail"] for row in engine.log()] == ["a", None, None]
    assert rows(engine, "cdc_dropped_mail") == {1: ("a",)}
    rebuild_state(engine.lake, engine.table)
    assert rows(engine, "cdc_dropped_mail") == {1: ("a",)}


def test_a_value_that_is_null_is_not_gone(spark) -> None:
    names = ["mail", "name", "transaction", 'it"s', "größe", "a.b", "srid"]
    columns = [Column(source=n, name=f"v{i}", type="text") for i, n in enumerate(names)]
    engine, nothing = table_of(spark, *columns), dict.fromkeys(names)
    spaced = engine.event("u", 30, 30)
    spaced["value"] |= {"after": {"id": 1, **nothing}, "transaction": None}
    outcome = engine.run(
        event(engine, "c", 10, dict.fromkeys(names, "a")), event(engine, "u", 20, nothing), spaced
    )
    assert (stopped_at(outcome), outcome.quarantined, rows(engine, "v0")) == (None, 0, {1: (None,)})
    gone = engine.run(event(engine, "u", 40, {}))
    assert gone.drift is not None
    assert (stopped_at(gone), gone.drift.gone) == (3, tuple(names))


@pytest.mark.slow
def test_events_of_before_a_column_was_added_flow_also_when_they_are_sent_again(spark) -> None:
    engine = table_of(spark)
    engine.run(event(engine, "c", 10, {}))
    declare(engine, MAIL)
    old = event(engine, "u", 20, {})
    assert stopped_at(engine.run(old)) is None
    mixed = engine.run(event(engine, "u", 30, {}), event(engine, "u", 40, {"mail": "a"}))
    assert stopped_at(mixed) is None
    assert stopped_at(engine.run(old, event(engine, "u", 50, {"mail": "b"}))) is None
    assert rows(engine, "mail") == {1: ("b",)}
    assert stopped_at(engine.run(event(engine, "u", 60, {}))) == 6


@pytest.mark.slow
def test_events_sent_before_the_connector_knew_the_column_flow_beside_later_copies(spark) -> None:
    engine = table_of(spark)
    engine.run(event(engine, "c", 10, {}))
    declare(engine, MAIL)
    sent = [event(engine, "u", 20, {}), event(engine, "u", 30, {})]
    again = [event(engine, "u", 20, {"mail": "a"}), event(engine, "u", 30, {"mail": "b"})]
    assert stopped_at(engine.run(*sent, *again)) is None
    assert [row["cdc_lsn"] for row in engine.log()] == [10, 20, 30]
    assert stopped_at(engine.run(event(engine, "u", 40, {}))) == 5


@pytest.mark.slow
def test_a_delete_of_a_whole_row_tells_of_its_columns_too(spark) -> None:
    engine = table_of(spark, MAIL, replica_identity="full")
    engine.run(event(engine, "c", 10, {"mail": "a"}), event(engine, "c", 11, {"mail": "b"}, id=2))
    whole = event(engine, "d", 20, None, before={"id": 1, "mail": None})
    assert stopped_at(engine.run(whole)) is None
    assert stopped_at(engine.run(event(engine, "d", 30, None, id=2, before={"id": 2}))) is None
    assert stopped_at(engine.run(event(engine, "c", 40, {}, id=3))) == 4


def test_a_key_that_is_gone_stops_its_table(spark) -> None:
    engine = table_of(spark, MAIL)
    engine.run(event(engine, "c", 10, {"mail": "a"}))
    lost = engine.event("u", 20, 20)
    lost["key"], lost["value"]["after"] = {"nr": 1}, {"nr": 1, "mail": "a"}
    outcome = engine.run(lost)
    assert outcome.drift is not None
    assert (outcome.drift.gone, outcome.quarantined) == (("id",), 0)


# --- another name --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_column_is_one_under_all_its_names(spark) -> None:
    engine = table_of(spark, MAIL)
    engine.run(event(engine, "c", 10, {"mail": "a"}), event(engine, "c", 11, {"mail": "b"}, id=2))
    declare(engine, RENAMED)
    outcome = engine.run(
        event(engine, "u", 20, {"mail": "c"}),  # not renamed yet
        event(engine, "c", 30, {"email": "d"}, id=3),
        event(engine, "u", 40, {"email": None, "mail": "another column's"}, id=2),
    )
    assert (stopped_at(outcome), outcome.quarantined) == (None, 0)
    assert rows(engine, "mail") == {1: ("c",), 2: (None,), 3: ("d",)}
    assert stopped_at(engine.run(event(engine, "u", 50, {}))) == 5


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "identity"), [("text", "default"), ("int", "full")])
def test_what_came_between_both_names_is_not_sent_rather_than_null(
    spark, kind: str, identity: str
) -> None:
    old, new = ("a", "b") if kind == "text" else (1, 2)
    engine = table_of(spark, replace(MAIL, type=kind), replica_identity=identity)
    engine.run(event(engine, "c", 10, {"mail": old}))
    gap = [event(engine, "u", 20, {}), event(engine, "c", 21, {}, id=2)]
    assert stopped_at(engine.run(*gap)) == 1
    declare(engine, replace(RENAMED, type=kind))
    assert stopped_at(engine.run(*gap, offset=1)) is None
    assert rows(engine, "mail", "cdc_toast_missing") == {1: (old, None), 2: (None, ["mail"])}
    assert [row["cdc_unavailable"] for row in engine.log()] == [None, ["mail"], ["mail"]]
    engine.run(
        event(engine, "r", 30, {"email": new}, incremental=True),
        event(engine, "r", 30, {"email": new}, id=2, incremental=True),
    )
    assert rows(engine, "mail", "cdc_toast_missing") == {1: (new, None), 2: (new, None)}
    before = rows(engine, "mail")
    rebuild_state(engine.lake, engine.table)
    assert rows(engine, "mail") == before


# --- another type --------------------------------------------------------------------------------

RETYPED = [
    # declared, a value of it, what comes instead
    ("text", "7", 7),
    ("text", "x", True),
    ("text", "x", [1, 2]),
    ("numeric(8,2)", "1.50", 1.5),
    ("integer", 7, "seven"),
    ("integer", 7, 7.5),
    ("bigint", 7, "7"),
    ("boolean", True, "true"),
    ("date", 19000, 1_700_000_000_000_000),
    ("timestamp", 1_700_000_000_000_000, "2026-01-01T00:00:00Z"),
    ("timestamptz", "2026-01-01T00:00:00Z", 1_700_000_000_000_000),
    ("real", 0.1, 0.12345678901),
    ("real", 0.1, 16777217),
    ("real", 0.1, 16777217.0),
    ("real", 0.1, 1e300),
    ("real", 0.1, 1e-300),
    ("real", 0.1, 8388608.1),
    ("real", 0.1, 0.1 + 2**-30),
]
FITTING = [
    ("bit(1)", True),
    ("bit(10)", "qgI="),
    ("point", {"x": 1.5, "y": 0.0, "wkb": "AQ==", "srid": None}),
    ("vector(2)", [1.5, 2.0]),
    ("text[]", ["true", "7"]),
    ("integer[]", []),
    ("jsonb", '{"name": null, "n": 12345678901234567890}'),
    ("hstore", '{"name": null}'),
    ("text", "true"),
    ("text", '7" pipe, "name":null'),
    ("numeric", "-12345678901234567890.125"),
    ("money", "-1234.56"),
    ("timestamptz", "2026-01-01T00:00:00Z"),
    ("real", 0.1),
    ("real", 1.17549435e-38),
    ("real", 1.1754944e-38),  # as later releases of Java write the same one
    ("real", 1.4e-45),
    ("real", 3.4028235e38),
    ("real", 3.66916e21),  # a double that Java 17 writes with 17 digits
    ("real", 7.7331056e25),  # a real that Java 17 writes so, off by nearly one
    ("real", 16777216),
    ("real", -0.0),
    ("real", "NaN"),
    ("real", "-Infinity"),
]


def table_of_types(spark: SparkSession, kinds: list[str]) -> Engine:
    """A table with a column of each type, some of them named like fields of every event."""
    names = [*("name", "op"), *(f"c{number}" for number in range(len(kinds)))]
    columns = [Column(source=n, name=n, type=kind) for n, kind in zip(names, kinds, strict=False)]
    return table_of(spark, *columns)


def valued(engine: Engine, values: list[Any]) -> dict[str, Any]:
    columns = engine.table.value_columns
    return {column.source: value for column, value in zip(columns, values, strict=True)}


@pytest.mark.slow  # by default a later test does so with one type
def test_two_misfits_in_a_row_stop_a_table_before_the_first(spark) -> None:
    engine = table_of_types(spark, [kind for kind, _, _ in RETYPED])
    wrong = valued(engine, [value for _, _, value in RETYPED])
    right = valued(engine, [value for _, value, _ in RETYPED])
    bad = [event(engine, "u", lsn, wrong) for lsn in (20, 30)]
    outcome = engine.run(event(engine, "c", 10, right), *bad)
    assert (stopped_at(outcome), outcome.taken, outcome.quarantined) == (1, {0: 1}, 0)
    assert outcome.drift is not None and set(outcome.drift.retyped) == set(right)


def test_every_form_of_a_type_fits(spark) -> None:
    engine = table_of_types(spark, [kind for kind, _ in FITTING])
    values = valued(engine, [value for _, value in FITTING])
    outcome = engine.run(*(event(engine, "u", lsn, values) for lsn in (10, 20)))
    assert (stopped_at(outcome), outcome.quarantined, outcome.appended) == (None, 0, 2)


WRITTEN = [
    0.1, -7.0, 123456.78, 16777216.0, 16777217.0, 33554434.0, 8388608.1, 8388608.5, 3.66916e21,
    1e10, 1e38, 3.4028235e38, 3.5e38, 1e300, 1e-300, 1.4e-45, 1e-45, 1e-46, 5e-324, 7.7331056e25,
    1.17549435e-38, 1.1754944e-38, 0.12345678, 0.123456789, 0.1 + 2**-30, 0.87654326, 0.8765433,
    0.87654329, 1.7976931348623157e308,
]  # fmt: skip


def test_both_decoders_refuse_the_same_numbers_as_no_reals(spark) -> None:
    engine = table_of(spark, REAL)
    records = [
        engine.record(number, event(engine, "c", 10 + number, {"n": value}, id=number))
        for number, value in enumerate(WRITTEN)
    ]
    taken = EventDecoder(engine.table, engine.plan).decode(spark.createDataFrame(records, RECORD))
    by_spark = {
        WRITTEN[row["cdc_offset"]]: None if row[REFUSAL] else row["n"] for row in taken.collect()
    }
    by_python = {number: as_real(number) for number in WRITTEN}
    assert by_spark == by_python
    assert 0 < [*by_python.values()].count(None) < len(WRITTEN)


def as_real(number: float) -> float | None:
    """What the function of Firehose makes of the number, as the log has it; None: it is refused."""
    try:
        read = reader(REAL.column_type)(Digits(number))
    except RefusedEvent:
        return None
    held: float = struct.unpack("f", struct.pack("f", read))[0]
    return held


def test_one_misfit_is_quarantined_and_the_next_one_stops_the_table(spark) -> None:
    engine = table_of(spark, MAIL)
    first = engine.run(event(engine, "c", 10, {"mail": "7"}), event(engine, "u", 20, {"mail": 7}))
    assert (stopped_at(first), first.quarantined) == (None, 1)
    for _ in range(2):  # it stays so, until somebody mends it
        second = engine.run(event(engine, "u", 30, {"mail": 8}), offset=2)
        assert (stopped_at(second), second.quarantined) == (2, 0)
    assert second.drift is not None
    message, remedy = describe_drift(engine.table, second.drift)
    assert "values of 'mail' that are not of type text" in message
    assert "declare `mail` with its current type" in remedy
    assert len(engine.quarantined()) == 1


@pytest.mark.slow
def test_a_misfit_between_values_that_fit_is_only_quarantined(spark) -> None:
    engine = table_of(spark, MAIL)
    for lsn in (10, 40):
        outcome = engine.run(
            event(engine, "u", lsn, {"mail": lsn}), event(engine, "u", lsn + 10, {"mail": "fits"})
        )
        assert (stopped_at(outcome), outcome.quarantined) == (None, 1)


def test_a_number_too_large_for_its_column_is_quarantined_alone(spark) -> None:
    engine = table_of(spark, Column(source="n", name="n", type="integer"))
    large = [event(engine, "u", lsn, {"n": 3_000_000_000}) for lsn in (20, 30)]
    outcome = engine.run(event(engine, "c", 10, {"n": 1}), *large)
    assert (stopped_at(outcome), outcome.quarantined) == (None, 2)


# --- a key that is another one -------------------------------------------------------------------


def test_a_state_is_not_continued_with_another_key(spark) -> None:
    engine = table_of(spark, MAIL)
    engine.lake.create(state_schema(engine.table, engine.plan))  # as it is
    other = replace(engine.table, key=("mail",))
    with pytest.raises(TableError, match="its key is id and cannot become mail") as error:
        engine.lake.create(state_schema(other, engine.plan))
    assert "another `name:`" in error.value.remedy
    engine.lake.create(changes_schema(other, engine.plan))
    unused: Any = None
    leases: Any = SimpleNamespace(hold=lambda _: nullcontext())
    job = TableJob(engine.plan, engine.lake, leases, unused, named=False)
    for work in (apply_table, rebuild_table, maintain_table):
        with pytest.raises(TableError, match="its key is id and cannot become mail"):
            work(job, other)
    qualified = engine.lake.qualified(engine.table.name)
    spark.sql(f"ALTER TABLE {qualified} UNSET TBLPROPERTIES ('cdclake.key')")
    engine.lake.create(state_schema(other, engine.plan))  # of an earlier version: it is not known
