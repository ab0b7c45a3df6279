"""Refusals of `forget` before it touches anything, its keys, report and redacted logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE, Position
from cdclake.errors import InputError
from cdclake.forget.erasure_report import erased_places, erasure_lines, places_left
from cdclake.forget.parse_keys import parse_keys
from cdclake.forget.refused_plans import check_erasable
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.forget import erasure_position
from cdclake.local.forget.log_redaction import redact_logs
from cdclake.local.process.home import Home
from cdclake.plan import Plan, Table
from tests.recorded.firehose import stream_of
from tests.unit.trace.test_explanation import POLLED, TABLE

MAIL = "ada.lovelace@example.org"


def plan(table: Table, **more: Any) -> Plan:
    return Plan(name="p", source_database="d", lake_database="l", tables=(table,), **more)


def left(
    stored: Plan, table: Table, *, undeclared: Sequence[str] = (), records: Sequence[str] = ()
) -> list[dict[str, str]]:
    return places_left(stored, table, in_kafka=True, undeclared=undeclared, records=records)


DELIVERED = replace(TABLE, delivery="firehose")


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (plan(replace(POLLED, polling=replace(POLLED.poll, query="SELECT 1"))), "query"),
        (plan(replace(TABLE, maintenance="glue")), "older snapshots"),
    ],
)
def test_copies_that_it_cannot_erase_are_refused(refused: Plan, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as error:
        check_erasable(refused, refused.tables[0])
    assert error.value.remedy


def test_firehose_is_no_reason() -> None:
    check_erasable(plan(DELIVERED, deliveries=(stream_of(DELIVERED),)), DELIVERED)


def test_a_polled_table_is_no_reason() -> None:
    check_erasable(plan(POLLED), POLLED)


def test_a_hudi_copy_is_no_reason() -> None:
    copy = HudiCopy(name="h", table=TABLE.name, type="cow", schedule="x")
    check_erasable(plan(TABLE, copies=(copy,)), TABLE)


def test_words_are_divided_into_keys() -> None:
    pair = replace(TABLE, key=(TABLE.key[0], TABLE.columns[1].name))
    assert parse_keys(TABLE, ["1", "2"]) == [("1",), ("2",)]
    assert parse_keys(pair, ["1", "a", "2", "b"]) == [("1", "a"), ("2", "b")]
    for words in ([], ["1", "a", "2"]):
        with pytest.raises(InputError, match="values were given"):
            parse_keys(pair, words)


def test_values_in_logs_are_overwritten_in_place(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.logs.mkdir()
    file, other = home.logs / "connect.log", home.logs / "kafka.log"
    file.write_text(f"refused {MAIL} and {MAIL}\n")
    other.write_text("7 refused\n")
    with file.open("a") as kept_open:
        sought = SoughtValues([SoughtValue("mail", MAIL), SoughtValue("id", "7")])
        assert redact_logs(home, sought) == ["connect.log"]
        kept_open.write("more\n")
    stars = "*" * len(MAIL)
    assert file.read_text() == f"refused {stars} and {stars}\nmore\n"
    assert other.read_text() == "7 refused\n"
    assert redact_logs(home, sought) == []


def test_the_report_names_what_is_left_and_what_it_does_not_reach() -> None:
    place = {"where": "s3://lake/a", "part": "JSON", "columns": ["mail"]}
    outcome = {"events": 5, "keys": 2, "records": 1, "derived": ["mails"]}
    report = {
        "ok": False, "table": "people", "keys": 2, "deleted_objects": 9,
        "erased": erased_places(TABLE, outcome, {"firehose": 4, "other": 0}, ["mails_hudi"]),
        "redacted_files": ["connect.log"], "stored": [place], "elsewhere": [],
        "shared": ["city"], "remaining": left(plan(TABLE), TABLE, undeclared=["s3://lake/wh/l.db/people_old/"]),
    }  # fmt: skip
    text = "\n".join(erasure_lines(report))
    for part in (
        "2 keys",
        "mails, mails_hudi",
        "9 objects",
        f"{TABLE.changes}: 5 events",
        f"{TABLE.name}: 2 rows",
        "cdclake_quarantine: 1 records",
        "firehose: 4 failed records",
        "connect.log",
        "city",
        "s3://lake/a: JSON (mail)",
    ):
        assert part in text
    assert f"Kafka's topic {TABLE.topic}" in text and "none of their values" not in text
    assert "people_old/, whose table the file does not declare, until: you drop its table" in text
    clean = "\n".join(erasure_lines({**report, "stored": []}))
    assert "none of their values is left where it was searched" in clean
    assert "numbers and short texts in the files of people" in clean


def test_failed_records_that_are_still_to_be_written_are_named() -> None:
    stream = replace(stream_of(DELIVERED), error_prefix="failed/here", retry_seconds=7200)
    late = left(plan(DELIVERED, deliveries=(stream,)), DELIVERED)
    [place] = [place for place in late if "failed/here/" in place["where"]]
    assert "`cdclake redrive`" in place["until"]
    [minutes] = [int(word) for word in place["until"].split() if word.isdecimal()]
    assert minutes * 60 >= stream.lateness_seconds > 7200
    streamed = left(plan(TABLE), TABLE)
    assert not any("failed" in place["where"] for place in streamed)


def test_records_of_undeclared_tables_are_named_with_their_remedy() -> None:
    [place] = [
        each for each in left(plan(TABLE), TABLE, records=["", "people"])
        if each["where"].startswith("records in cdclake_quarantine")
    ]  # fmt: skip
    assert place["where"].endswith("declare: (no table), people")
    assert """WHERE coalesce("table", '') IN ('', 'people')`""" in place["until"]
    assert not any("records in" in each["where"] for each in left(plan(TABLE), TABLE))


def test_partitions_of_copies_are_named() -> None:
    copy = HudiCopy(name="h", table=TABLE.name, type="cow", schedule="x", partition_by="city")
    for copies, expected in (((copy,), 1), ((replace(copy, partition_by=None),), 0)):
        places = left(plan(TABLE, copies=copies), TABLE)
        assert sum("partitions of h" in place["where"] for place in places) == expected


def test_each_place_that_had_the_rows_is_named_with_their_number() -> None:
    outcome = {"events": 5, "keys": 2, "records": 0, "derived": ["mails"], "metadata": {}}
    places = erased_places(TABLE, outcome, {"firehose": 4}, ["mails_hudi"])
    assert [(place["where"], place["count"]) for place in places] == [
        (TABLE.changes, 5), (TABLE.name, 2), ("cdclake_quarantine", 0), ("firehose", 4),
        ("mails", None), ("mails_hudi", None),
    ]  # fmt: skip


def test_the_position_of_an_erasure_is_between_two_transactions() -> None:
    source = {"sequence": '["160","175"]', "lsn": 175}
    marker = json.dumps({"op": "u", "cdc_epoch": "3", "source": source, "after": {"id": 2}})
    position = erasure_position._start_of(marker.encode())
    assert str(Position(3, 150, STREAM_PHASE, 10**9, 7)) < position  # of an earlier transaction
    assert str(Position(3, 160, SNAPSHOT_PHASE, 170, 7)) < position  # read by a snapshot before
    assert position < str(Position(3, 160, STREAM_PHASE, 170, 0))  # of the marker's transaction
    assert position < str(Position(3, 175, STREAM_PHASE, 170, 0)) < str(Position(4, 0, 0, 1, 0))
