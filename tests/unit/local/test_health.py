"""Health by what `status` has found, and its text."""

from typing import Any

import pytest

from cdclake.cli import status as command
from cdclake.local import status
from cdclake.local.health import EXIT_CODES, judged
from cdclake.local.lake.no_answer import known
from cdclake.plan import Table

TABLE: dict[str, Any] = {
    "table": "t", "state": "streaming", "last_error": None, "quarantined": 0,
    "withheld": 0, "incomplete": 0,
    "source_changes": [], "relation_changes": [], "live_rows": 1, "changes_rows": 1,
    "lag_events": 0, "freshness_s": None,
    "loading": None, "lines": [], "gap": None,
}  # fmt: skip
PART = {"name": "kafka", "state": "running", "pid": 1, "port": None}


def answer(part: dict[str, Any] | None = None, **table: Any) -> dict[str, Any]:
    found = {
        "components": [PART | (part or {})],
        "tables": [TABLE | table],
        "slot": None,
        "file": "",
    }
    return {**found, **judged(found)}


def test_a_scheduled_job_that_failed_needs_attention() -> None:
    job = {"job": "verify_tables", "schedule": "rate(1 day)", "exit_code": 1}
    found = judged({"components": [PART], "tables": [], "schedules": [job]})
    assert (found["ok"], found["health"]) == (False, "attention")
    assert "`cdclake logs verify_tables` shows why" in found["attention"][0]
    assert judged({"components": [PART], "tables": [], "schedules": [job | {"exit_code": 0}]})["ok"]


def test_a_failed_connector_needs_attention() -> None:
    connector = {"connector": "sink", "last_error": "no table"}
    found = judged({"components": [PART], "tables": [], "connectors": [connector]})
    assert (found["health"], found["attention"]) == ("attention", ["connector sink: no table"])
    healthy = connector | {"last_error": None}
    assert judged({"components": [PART], "tables": [], "connectors": [healthy]})["ok"]


@pytest.mark.parametrize(
    ("part", "table", "code", "words"),
    [
        ({}, {}, 0, ""),
        ({}, {"state": "loading"}, 0, ""),
        ({}, {"state": "stopped"}, 1, "cdclake resume"),
        ({}, {"quarantined": 3}, 1, "cdclake replay"),
        ({}, {"quarantined": 3, "polled": {"refused": 3}}, 1, "the next poll that reads them"),
        ({}, {"last_error": "broken"}, 1, "broken"),
        ({}, {"source_changes": [{"column": "a"}]}, 1, "differs from the source"),
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


def test_what_is_not_known_is_a_dash(capsys):
    table = Table(schema="s", table="t", name="t", topic="t", key=(), columns=())
    unknown = status._unknown(table, "down")
    found = answer({"state": "dead", "pid": None})
    found["tables"].append({**unknown, "source_changes": None, "relation_changes": None})
    command._render(found)
    out = capsys.readouterr().out
    assert "None" not in out and "freshness -, " in out and "port -" in out


def test_progress_is_shown(capsys):
    command._render(
        answer(state="loading", loading={"phase": "reading", "rows": 5, "estimated_rows": None})
    )
    assert "loading: 5 of about - rows" in capsys.readouterr().out


def test_withheld_events_are_shown_among_the_quarantined_ones(capsys):
    command._render(answer(quarantined=3, withheld=2))
    assert "3 quarantined (2 withheld by rules)" in capsys.readouterr().out
    command._render(answer(quarantined=3))
    assert "withheld" not in capsys.readouterr().out


def test_rows_that_lack_values_in_athena_are_shown(capsys):
    command._render(answer(incomplete=2))
    assert ", 2 incomplete in Athena" in capsys.readouterr().out
    command._render(answer())
    assert "incomplete" not in capsys.readouterr().out


def test_a_server_that_does_not_answer_is_no_failure():
    def refused() -> int:
        raise ConnectionRefusedError

    assert known(refused, None) is None
    with pytest.raises(ZeroDivisionError):
        known(lambda: 1 // 0, None)
