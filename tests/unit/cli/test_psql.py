"""`cdclake psql` with arguments that it cannot run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdclake.cli import main as command
from cdclake.local.lake import lake

DSN = "host=127.0.0.1 port=5432 user=u password=p dbname=d"


@pytest.mark.parametrize(
    ("words", "client", "code", "message"),
    [
        (("--json",), None, 0, None),
        (("--json",), "/bin/psql", 0, None),
        (("--json", "--", "-c", "SELECT 1"), None, 2, "does not run psql"),
        (("--json", "--", "-c", "SELECT 1"), "/bin/psql", 2, "does not run psql"),
        ((), None, 0, None),
        (("--", "-c", "SELECT 1"), None, 2, "psql is not installed, so its arguments"),
    ],
)
def test_arguments_that_are_not_run_are_refused(
    words: tuple[str, ...], client: str | None, code: int, message: str | None,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    started: list[Any] = []
    monkeypatch.setattr(lake, "running_source", lambda _: (DSN, False))
    monkeypatch.setattr("shutil.which", lambda _: client)
    monkeypatch.setattr("os.execve", lambda *given: started.append(given))
    with pytest.raises(SystemExit) as ended:
        command.main(["psql", *words])
    out, err = capsys.readouterr()
    assert (ended.value.code, started) == (code, [])
    if message is not None:
        shown = json.loads(out)["error"]["message"] if "--json" in words else err
        assert message in shown
