"""Answer of the demo over a sample database: the comparison, its events, and the figures."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.cli import main as command
from cdclake.local.demo import sample_run
from cdclake.local.demo.freshness import Freshness
from cdclake.local.demo.measure import Measured
from cdclake.local.demo.sample_database import SAMPLES
from cdclake.local.demo.show import PlainLines
from cdclake.local.demo.tasks import Stopwatch

EVENTS = {"snapshot": 5, "inserts": 1, "updates": 2, "deletes": 0}
FIGURES = {"events", "events_per_s", "freshness_p50_ms", "freshness_p95_ms", "seconds_to_first_row"}


def test_figures_are_measured_from_the_first_statement_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watch = Stopwatch()
    last_ms = round(1000 * (watch.started_at + 60))
    measured = Measured({}, Freshness(600, 400, 900), last_ms - 50_000, last_ms)
    session = SimpleNamespace(execute=lambda _: SimpleNamespace(rowcount=1))
    database = SAMPLES["pagila"]
    for name in database.files:
        (tmp_path / name).write_text("")
    monkeypatch.setattr(type(database), "load", lambda *_: 5)
    up = SimpleNamespace(up_bare=lambda *_: {}, up=lambda *_, **__: {}, ROWS="rows")
    monkeypatch.setattr(sample_run, "lifecycle", up)
    monkeypatch.setattr(sample_run, "open_lake", lambda _: None)
    monkeypatch.setattr(sample_run, "running_source", lambda _: ("host=h", False))
    monkeypatch.setattr("psycopg.connect", lambda *_, **__: nullcontext(session))
    proof = {"ok": True, "tables": [{"table": "actor"}]}
    monkeypatch.setattr(sample_run, "prove", lambda _: proof)
    monkeypatch.setattr(sample_run, "verdict", lambda _: "equal")
    monkeypatch.setattr(sample_run, "measure", lambda _: measured)
    monkeypatch.setattr(sample_run, "_events", lambda _: {"actor": EVENTS})
    show = PlainLines(watch, lambda _: None)
    answer = sample_run.run_sample(None, database, tmp_path, watch, show, keep=True)  # type: ignore[arg-type]
    assert answer["ok"] and answer["tables"] == [{"table": "actor", **EVENTS}]
    assert answer.keys() >= FIGURES
    assert (answer["events"], answer["freshness_p95_ms"]) == (600, 900)
    assert answer["seconds_to_first_row"] == pytest.approx(10, abs=0.1)
    assert answer["events_per_s"] == pytest.approx(10, abs=0.2)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--database", "pagila", "--seconds", "20"), "--seconds"),
        (("--database", "moma", "--rate", "5"), "--rate"),
        (("--database", "pagila", "--seed", "1"), "--seed"),
        (("--database", "pagila", "--delivery", "firehose"), "--delivery"),
        (("--data", "."), "--data"),
    ],
)
def test_options_that_do_not_apply_to_the_database_are_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    option: str,
) -> None:
    def started(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("cdclake.cli.demo._demo_of", started)
    monkeypatch.setattr("cdclake.cli.demo._demo_of_shop", started)
    with pytest.raises(SystemExit) as ended:
        command.main(("demo", *words, "--json"))
    error = json.loads(capsys.readouterr().out)["error"]
    assert (ended.value.code, error["code"]) == (2, "bad_input")
    assert option in error["message"] and option in error["remedy"]
