"""Health by what `status` has found, and its text."""

from typing import Any

import pytest

from cdclake.cli.status_text import status_lines
from cdclake.local import status
from cdclake.local.health import EXIT_CODES, assess_health
from cdclake.local.lake.no_answer import answer_or_unknown
from cdclake.plan import Table

TABLE: dict[str, Any] = {
    "table": "t", "delivery": "stream", "state": "streaming", "last_error": None, "quarantined": 0,
    "withheld": 0, "incomplete": 0,
    "source_changes": [], "relation_changes": [], "live_rows": 1, "changes_rows": 1,
    "topic": "p.public.t", "lag_events": 0, "freshness_s": None,
    "loading": None, "lines": [], "gap": None, "last_verified": None,
}  # fmt: skip
PART = {"name": "kafka", "state": "running", "pid": 1, "port": None}


def answer(part: dict[str, Any] | None = None, **table: Any) -> dict[str, Any]:
    found = {
        "components": [PART | (part or {})],
        "tables": [TABLE | table],
        "slot": None,
        "file": "",
    }
    return {**found, **assess_health(found)}


def test_a_scheduled_job_that_failed_needs_attention() -> None:
    job = {"job": "verify_tables", "schedule": "rate(1 day)", "exit_code": 1}
    found = assess_health({"components": [PART], "tables": [], "schedules": [job]})
    assert (found["ok"], found["health"]) == (False, "attention")
    assert "`cdclake logs verify_tables` shows why" in found["attention"][0]
    assert assess_health(
        {"components": [PART], "tables": [], "schedules": [job | {"exit_code": 0}]}
    )["ok"]


def test_a_failed_connector_needs_attention() -> None:
    connector = {"connector": "sink", "last_error": "no table"}
    found = assess_health({"components": [PART], "tables": [], "connectors": [connector]})
    assert (found["health"], found["attention"]) == ("attention", ["connector sink: no table"])
    healthy = connector | {"last_error": None}
    assert assess_health({"components": [PART], "tables": [], "connectors": [healthy]})["ok"]


@pytest.mark.parametrize(
    ("part", "table", "code", "words"),
    [
        ({}, {}, 0, ""),
        ({}, {"state": "loading"}, 0, ""),
        ({}, {"state": "stopped"}, 1, "cdclake resume"),
        ({}, {"quarantined": 3}, 1, "cdclake replay"),
        ({}, {"quarantined": 3, "withheld": 3}, 0, ""),
        ({}, {"quarantined": 3, "withheld": 2}, 1, "t: 1 events in quarantine"),
        ({}, {"quarantined": 3, "withheld": 3, "delivery": "poll"}, 0, ""),
        ({}, {"quarantined": 3, "delivery": "poll"}, 1, "the next poll that reads the row"),
        ({}, {"quarantined": 3, "delivery": "firehose"}, 1, "cdclake redrive"),
        ({}, {"last_error": "broken"}, 1, "broken"),
        ({}, {"source_changes": [{"column": "a", "ignored": False}]}, 1, "differs from the source"),
        ({}, {"source_changes": [{"column": "a", "ignored": True}]}, 0, ""),
        ({}, {"source_changes": [{"ignored": True}, {"ignored": False}]}, 1, "differs from the"),
        (
            {},
            {"relation_changes": [{"message": "it was renamed", "remedy": "name it again"}]},
            1,
            "it was renamed; name it again",
        ),
        ({"state": "starting"}, {}, 1, "starting: kafka"),
        ({"state": "dead"}, {"state": "stopped"}, 4, "cdclake up"),
        ({"state": "failed"}, {}, 4, "cdclake up"),
    ],
)
def test_the_exit_code_says_the_health(part, table, code, words):
    found = answer(part, **table)
    assert EXIT_CODES[found["health"]] == code
    assert words in "\n".join(found["attention"])
    assert found["ok"] == (code == 0) == (found["attention"] == [])


def test_an_ignored_column_is_still_shown():
    change = {"line": 3, "message": "`x` is not declared", "remedy": "write it", "ignored": True}
    assert ":3: `x` is not declared; write it" in "\n".join(
        lines_of(answer(source_changes=[change]))
    )


def lines_of(found: dict[str, Any], *, verbose: bool = False) -> list[str]:
    return list(status_lines(found, verbose))


def test_what_is_not_known_is_a_dash():
    table = Table(schema="s", table="t", name="t", topic="t", key=(), columns=())
    unknown = status._unknown(table, "down")
    found = answer({"state": "dead", "pid": None})
    found["tables"].append({**unknown, "source_changes": None, "relation_changes": None})
    lines = lines_of(found)
    assert not any("None" in line for line in lines)
    assert lines[4].split() == ["kafka", "dead", "-", "-"]
    assert [line.split() for line in lines if line.startswith("t ")] == [
        ["t", "unknown", "-", "-", "-", "-", "-", "never"]
    ]


def test_progress_is_shown():
    found = answer(
        state="loading", loading={"phase": "reading", "rows": 5000, "estimated_rows": None}
    )
    assert "t: loading: 5,000 of about - rows" in lines_of(found)


def test_withheld_events_are_shown_among_the_quarantined_ones():
    assert any(
        "3 (2 withheld by rules)" in line for line in lines_of(answer(quarantined=3, withheld=2))
    )
    assert not any("withheld" in line for line in lines_of(answer(quarantined=3)))


def test_only_what_deviates_is_shown_with_totals_unless_all_is_asked_for():
    found = answer()
    found["tables"] += [TABLE | {"table": f"t{n}", "live_rows": 1000} for n in range(3)]
    found["tables"].append(TABLE | {"table": "late", "lag_events": 12345})
    lines = lines_of(found)
    assert [line.split()[0] for line in lines if " streaming " in line] == ["late", "all"]
    assert [line.split()[:7] for line in lines if line.startswith("all")] == [
        ["all", "5", "tables", "streaming", "3,002", "5", "12,345"]
    ]
    assert "nothing to report of 4 other tables; -v shows every table" in lines
    everything = lines_of(found, verbose=True)
    assert sum(" streaming " in line for line in everything) == 6
    assert any(line.split() == ["kafka", "running", "1", "-"] for line in everything)


def test_the_lag_of_a_shared_topic_counts_once():
    found = answer(topic="shop", lag_events=30)
    found["tables"].append({**found["tables"][0], "table": "u"})
    [total] = [line for line in lines_of(found) if line.startswith("all")]
    assert "30" in total.split() and "60" not in total.split()


def test_a_healthy_polled_table_does_not_deviate():
    polled = TABLE | {"table": "p", "delivery": "poll", "state": "polling"}
    found = answer()
    found["tables"] += [polled, polled | {"table": "late", "state": "paused"}]
    lines = lines_of(found)
    assert [line.split()[0] for line in lines if " paused " in line] == ["late"]
    assert not any(line.startswith("p ") for line in lines)
    assert "nothing to report of 2 other tables; -v shows every table" in lines


def test_an_error_is_shown_once():
    lines = lines_of(answer(last_error="broken"))
    assert sum("broken" in line for line in lines) == 1
    stopped = lines_of(answer(state="stopped", last_error="broken"))
    assert "t: broken" in stopped


def test_rows_that_lack_values_in_athena_are_shown():
    assert any(", 2 incomplete in Athena" in line for line in lines_of(answer(incomplete=2)))
    assert not any("incomplete" in line for line in lines_of(answer()))


def test_a_server_that_does_not_answer_is_no_failure():
    def refused() -> int:
        raise ConnectionRefusedError

    assert answer_or_unknown(refused, None) is None
    with pytest.raises(ZeroDivisionError):
        answer_or_unknown(lambda: 1 // 0, None)
