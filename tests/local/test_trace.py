"""`cdclake trace` and `cdclake peek` on a real lake with one row for each situation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdclake.local.lake.lake import aws_environment, open_lake
from cdclake.local.process.home import Home
from cdclake.local.trace.gather import trace_row
from tests.local.running import PROJECT, RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200)]

PLAIN = ("late", "limited", "emptied", "softly", "unpublished", "filtered", "halting", "polled")
CREATED = """
create table rows (id bigint primary key, v int, status text, n numeric(5,2), email text,
  note text);
insert into rows select i, 1, 'new', i, i || '@example.org', case when i = 8 then
  (select string_agg(md5(x::text), '') from generate_series(1, 400) x) end
  from generate_series(1, 12) i;
create table coded (code varchar(5), "amount%" numeric(5,2), primary key (code, "amount%"));
insert into coded values ('abcde', 1.5);
""" + "".join(
    f"create table {name} (id bigint primary key, v numeric(5,2),"
    " at timestamptz not null default clock_timestamp());"
    f"insert into {name} (id, v) select i, i from generate_series(1, 5) i;"
    for name in PLAIN
)
CHANGED = """
update rows set v = 2 where id = 2;
insert into rows values (20, 1, 'new', 'NaN', 'n@example.org', null);
insert into limited (id, v) values (21, -1);
delete from rows where id = 6;
update rows set id = 70 where id = 7;
update rows set v = 2 where id = 8;
delete from rows where id = 11;
insert into rows values (11, 5, 'new', 1, 'again@example.org', null);
insert into limited (id, v) values (22, -1);
update limited set v = 9 where id = 22;
update late set v = 7 where id = 1;
delete from softly where id = 1;
truncate emptied;
insert into halting (id, v) select i, 'NaN' from generate_series(10, 15) i;
update rows set n = 'NaN' where id = 9;
update rows set v = 3 where id = 70;
insert into emptied (id, v) values (2, 9);
alter publication cdclake_traced drop table unpublished, filtered;
insert into unpublished (id, v) values (10, 1);
alter publication cdclake_traced add table filtered where (id < 100);
insert into filtered (id, v) values (200, 1), (50, 1);
"""
FILE = """
version: 1
name: traced
source: {database: postgres}
stream: {trigger_seconds: 2}
schedules: {apply: rate(1 day)}
policies: {stop_table_after: 4}
tables:
  public.rows:
    key: [id]
    columns: {id: bigint, v: integer, status: text, n: "numeric(5,2)", note: text,
      email: {type: text, mask: hash}}
  public.coded:
    key: [code, amount%]
    columns: {code: varchar(5), amount%: "numeric(5,2)"}
"""
PLAIN_TABLE = """
  public.NAME:
    key: [id]
    SETTING
    columns: {id: bigint, v: "numeric(5,2)", at: timestamptz}
"""
SETTINGS = {
    "late": "apply: scheduled",
    "limited": "replica_identity: full\n    checks: [{range: {v: {min: 0}}, on: REACTION}]",
    "softly": "deletes: soft",
    "polled": "capture: {poll: {by: at, every: rate(1 day)}}",
}

# By metric of a table: the key of `status`, for the figures that do not age.
FIGURES = {
    "changes_rows": "changes_rows",
    "state_rows": "state_rows",
    "live_rows": "live_rows",
    "lag_events": "lag_events",
    "freshness_seconds": "freshness_s",
    "quarantined_events": "quarantined",
    "withheld_events": "withheld",
    "failed_records": "failed",
}

# By row: the answer, and a further finding that must be among those of the row.
SITUATIONS: dict[tuple[str, str], tuple[str, str]] = {
    ("rows", "1"): ("applied", "loaded"),
    ("rows", "2"): ("applied", "masked"),
    ("rows", "20"): ("quarantined", "quarantined"),
    ("limited", "21"): ("withheld", "withheld"),
    ("rows", "6"): ("deleted", "masked"),
    ("rows", "7"): ("key_changed_to", "masked"),
    ("rows", "70"): ("applied", "key_changed_from"),
    ("rows", "8"): ("applied", "unsent_value"),
    ("rows", "11"): ("applied", "reinserted"),
    ("rows", "999"): ("no_such_row", "no_such_row"),
    ("late", "1"): ("not_applied", "not_applied"),
    ("softly", "1"): ("deleted_soft", "deleted_soft"),
    ("emptied", "1"): ("truncated", "truncated"),
    ("rows", "9"): ("quarantined", "applied"),
    ("limited", "22"): ("applied", "withheld"),
    ("emptied", "2"): ("applied", "applied"),
    ("halting", "1"): ("applied", "table_stopped"),
    ("unpublished", "1"): ("applied", "not_published"),
    ("unpublished", "10"): ("not_published", "not_published"),
    ("filtered", "200"): ("filtered", "filtered"),
    ("filtered", "50"): ("applied", "applied"),
    ("polled", "1"): ("applied", "polled"),
    ("polled", "10"): ("not_polled", "not_polled"),
}


def write(file: Path, reaction: str) -> Path:
    tables = (
        PLAIN_TABLE.replace("NAME", name).replace("SETTING", SETTINGS.get(name, ""))
        for name in PLAIN
    )
    file.write_text(FILE + "".join(tables).replace("REACTION", reaction))
    return file


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with lake_in(tmp_path_factory.mktemp("lake")) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        running.run("up", str(write(running.home.parent / "traced.yaml", "quarantine")))
        running.run("verify", expect=None)  # the first load has arrived
        with running.connect() as connection:
            for statement in CHANGED.strip().split(";\n"):
                connection.execute(statement)
        running.run("verify", expect=None)
        with running.connect() as connection:  # a comparison polls, so this row comes after it
            connection.execute("insert into polled (id, v) values (10, 1)")
        running.eventually(lambda: _state(running, "halting") == "stopped", 60)
        yield running


def test_twenty_situations_are_planted() -> None:
    """As many different explanations of a row; further ones follow from what the tests do."""
    assert len(set(SITUATIONS.values())) >= 20


def _state(lake: RunningLake, table: str) -> str:
    states: dict[str, str] = {t["table"]: t["state"] for t in lake.run("status")["tables"]}
    return states[table]


def _codes(report: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in report["findings"]]


@pytest.mark.parametrize(("table", "key"), SITUATIONS)
def test_trace_explains_a_planted_situation(lake: RunningLake, table: str, key: str) -> None:
    answer, further = SITUATIONS[table, key]
    report = lake.run("trace", table, key)
    assert report["situation"] == answer, report
    assert further in _codes(report), report


def test_trace_follows_one_change_hop_by_hop(lake: RunningLake) -> None:
    report = lake.run("trace", "public.rows", "2")
    loaded, changed = report["events"]
    assert (loaded["operation"], changed["operation"]) == ("snapshot", "update")
    assert loaded["after"]["v"] == changed["before"]["v"] == 1
    assert changed["after"]["v"] == report["readers"]["rows_current"]["v"] == 2
    hops = [hop for hop in report["hops"] if hop["event"] == 1]
    assert [hop["hop"] for hop in hops] == ["source", "kafka", "changelog", "visible", "state"]
    assert hops[0]["seconds"] is None and all(hop["seconds"] >= 0 for hop in hops[2:])
    [[offset, transaction]] = lake.sql(
        "select cdc_offset, cdc_tx_id from rows_changes where id = 2 and cdc_op = 'u'"
    )
    assert (hops[1]["offset"], changed["tx_id"]) == (offset, transaction)
    assert "2@example.org" not in str(report)
    assert report["readers"]["source"] == {"has_row": True}


def test_trace_reads_records_that_it_does_not_search_by_their_offsets(
    lake: RunningLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like in a topic with more records than are searched: only the row's own ones are read."""
    monkeypatch.setattr("cdclake.local.trace.kafka_events._ALWAYS_SEARCHED", 0)
    for name in aws_environment(lake.endpoints):
        monkeypatch.delenv(name, raising=False)  # what `open_lake` sets is gone afterwards
    facts = trace_row(open_lake(Home(lake.home)), "rows", ["2"])
    assert len(facts.events) == 2 and all(event.kafka_ms for event in facts.events)
    [(retained, first, end)] = facts.flow.searched.values()
    assert retained < first == end


def test_trace_names_both_sides_of_a_changed_key(lake: RunningLake) -> None:
    assert lake.run("trace", "rows", "7")["events"][-1]["other_key"] == "70"
    assert lake.run("trace", "rows", "70")["events"][0]["other_key"] == "7"


def test_trace_gives_the_reason_of_a_quarantined_event(lake: RunningLake) -> None:
    [hop] = [h for h in lake.run("trace", "rows", "20")["hops"] if h["hop"] == "quarantine"]
    assert hop["reason"].startswith("NOT_REPRESENTABLE")


def test_trace_explains_an_event_of_a_stopped_table_in_kafka(lake: RunningLake) -> None:
    with lake.connect() as connection:
        connection.execute("update halting set v = 2 where id = 3")
    lake.eventually(lambda: lake.run("trace", "halting", "3")["situation"] == "table_stopped")


def test_trace_explains_an_event_that_a_paused_stream_has_not_read(lake: RunningLake) -> None:
    lake.run("pause")
    try:
        with lake.connect() as connection:
            connection.execute("update rows set v = 3 where id = 3")
        lake.eventually(lambda: lake.run("trace", "rows", "3")["situation"] == "paused")
    finally:
        lake.run("resume")
    lake.eventually(lambda: lake.run("trace", "rows", "3")["situation"] == "applied", 150)


def test_trace_refuses_what_it_cannot_explain(lake: RunningLake) -> None:
    undeclared = lake.run("trace", "nothing", "1", expect=2)["error"]
    assert "does not declare it" in undeclared["message"] and "cdclake up" in undeclared["remedy"]
    assert "invalid key 'x' of rows" in lake.run("trace", "rows", "x", expect=2)["error"]["message"]
    assert (
        "has one column, not 2" in lake.run("trace", "rows", "1", "2", expect=2)["error"]["message"]
    )


def test_trace_reads_a_key_as_the_source_does_and_cuts_nothing(lake: RunningLake) -> None:
    for amount in ("1.5", "1.50", "0001.5"):
        report = lake.run("trace", "coded", "abcde", amount)
        assert (report["situation"], len(report["events"])) == ("applied", 1)
    for code, amount in (("abcdefg", "1.5"), ("abcde", "1.501")):
        refused = lake.run("trace", "coded", code, amount, expect=2)["error"]
        assert "does not fit character varying(5), numeric(5,2)" in refused["message"]


def test_trace_explains_a_row_that_was_not_captured(lake: RunningLake) -> None:
    with lake.connect() as connection:
        connection.execute("alter publication cdclake_traced add table unpublished")
    assert lake.run("trace", "unpublished", "10")["situation"] == "not_in_kafka"


def test_trace_explains_a_resync(lake: RunningLake) -> None:
    lake.run("resync", "softly")
    # The rows that it read are in the changelog; the state follows with a later batch.
    lake.eventually(lambda: lake.run("trace", "softly", "2")["situation"] == "applied")
    assert "resynced" in _codes(lake.run("trace", "softly", "2"))


def test_trace_explains_a_late_event(lake: RunningLake) -> None:
    """The withheld event is replayed after the change that follows it."""
    assert lake.run("trace", "limited", "22")["situation"] == "applied"
    lake.run("up", str(write(lake.home.parent / "traced.yaml", "warn")))
    lake.run("replay", "--table", "limited")
    report = lake.run("trace", "limited", "22")
    assert report["situation"] == "applied" and "late_event" in _codes(report)
    assert report["readers"]["limited_current"]["v"] == "9.00"
    assert lake.run("trace", "limited", "21")["situation"] == "applied"


def test_metrics_have_the_values_of_status(lake: RunningLake) -> None:
    lake.run("pause")  # so that no batch changes a figure between both
    try:
        status, found = lake.run("status", expect=None), lake.run("metrics")["metrics"]
    finally:
        lake.run("resume")
    values = {(each["name"], *each["labels"].values()): each["value"] for each in found}
    for table in status["tables"]:
        name = table["table"]
        for key in FIGURES:
            assert values.get((f"cdclake_table_{key}", name)) == table[FIGURES[key]], (key, table)
        assert values["cdclake_table_stopped", name] == (table["state"] == "stopped")
    assert values["cdclake_table_quarantined_events", "rows"] >= 2
    assert values["cdclake_slot_wal_limit_bytes",] == status["slot"]["limit_bytes"]
    assert values["cdclake_healthy",] == 0  # events are refused
    for part in status["components"]:
        up = values["cdclake_component_up", part["name"]]
        assert up == (part["state"] == "running"), part


def test_trace_prints_a_timeline(lake: RunningLake) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cdclake.cli.main", "trace", "rows", "70"],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", "CDCLAKE_HOME": str(lake.home)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "rows 70: applied"
    assert any("Kafka: traced.public.rows, partition 0, offset" in line for line in lines)
    assert any(line.startswith("  rows_current") for line in lines)


def test_peek_shows_the_last_events_of_a_table(lake: RunningLake) -> None:
    answer = lake.run("peek", "softly", "--last", "2")
    assert answer["topic"] == "traced.public.softly" and len(answer["events"]) == 2
    deleted = next(
        event
        for event in lake.run("peek", "softly", "--last", "100")["events"]
        if event["operation"] == "delete"
    )
    assert deleted["key"] == {"id": 1} and deleted["value"]["op"] == "d"
    [again] = lake.run("peek", answer["topic"], "--offset", str(deleted["offset"]), "--last", "1")[
        "events"
    ]
    assert again == deleted
    [[position]] = lake.sql("select cdc_position from softly_changes where cdc_op = 'd'")
    assert deleted["position"] == position


def test_peek_names_the_reason_and_does_not_lift_masks(lake: RunningLake) -> None:
    events = lake.run("peek", "rows", "--last", "100")["events"]
    refused = [event for event in events if event["refused"]]
    assert any(event["refused"].startswith("NOT_REPRESENTABLE") for event in refused)
    assert "@example.org" not in str(events)


def test_quarantine_shows_key_column_value_and_reason(lake: RunningLake) -> None:
    events = lake.run("quarantine", "rows")["events"]
    [refused] = [event for event in events if event["key"] == {"id": 20}]
    assert refused["reasons"] == [
        {
            "reason": "NOT_REPRESENTABLE: decimal(5,2) cannot hold 'n'",
            "column": "n",
            "value": "NaN",
        }
    ]
    assert not refused["withheld"] and not refused["accepted_now"]
    assert "@example.org" not in str(events)
    assert len(lake.run("quarantine", "--limit", "2")["events"]) == 2


def test_peek_refuses_what_is_not_there(lake: RunningLake) -> None:
    polled = lake.run("peek", "polled", expect=2)["error"]
    assert "polls read it" in polled["message"]
    unknown = lake.run("peek", "nothing", expect=2)["error"]
    assert "traced.public.rows" in unknown["remedy"]
    beyond = lake.run("peek", "rows", "--offset", "100000", expect=2)["error"]
    assert "offsets 0 to" in beyond["message"]
    assert (
        "no partition 7"
        in lake.run("peek", "rows", "--partition", "7", expect=2)["error"]["message"]
    )


def test_trace_lists_where_the_values_of_a_deleted_row_are_stored(lake: RunningLake) -> None:
    report = lake.run("trace", "rows", "6", "--stored")
    assert report["situation"] == "deleted"
    found = {(place["part"], tuple(place["columns"])) for place in report["stored"]}
    parts = {part for part, columns in found if "email" in columns}
    # The writer chooses for each column whether its texts are in a dictionary.
    assert "values of column email" in parts
    assert parts & {"page of column email", "dictionary of column email"}
    assert ("values of column id", ("id",)) in found
    holding = [place["where"] for place in report["stored"] if "email" in place["columns"]]
    assert all("/rows" in where for where in holding), holding
    assert report["remaining"][0]["where"] == "Kafka's topic traced.public.rows"
    assert lake.run("trace", "rows", "999", "--stored")["stored"] == []
