"""Messages of commands that are refused: what was typed, and no words of a library."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from cdclake.cli.main import main
from cdclake.local.components import installed
from cdclake.local.demo.pinned_files import PinnedFiles
from tests.unit.config.pipelines import VALID

ERROR_OF_CHOICE = (
    "Invalid value for '--format': 'xml' is not one of 'table', 'line', 'csv', 'json', 'md',"
    " 'parquet'."
)
TARGET = "--file and --environment require --target aws"
ASKED = "remedy: run `cdclake {} --help` for its arguments"


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        ("schema --doc", "Option '--doc' requires an argument.", ASKED.format("schema")),
        ("init --update", "Option '--update' requires an argument.", ASKED.format("init")),
        (
            "source sql a.sql --file",
            "Option '--file' requires an argument.",
            ASKED.format("source sql"),
        ),
        ("nothing", "No such command 'nothing'.", "remedy: run `cdclake --help`"),
        ("sql --format xml query", ERROR_OF_CHOICE, ASKED.format("sql")),
        (
            "peek t --last 0",
            "Invalid value for '--last': it must be greater than or equal to 1",
            ASKED.format("peek"),
        ),
        (
            "verify --sample x",
            "Invalid value for '--sample': it must be a valid integer",
            ASKED.format("verify"),
        ),
        ("sql -f nope", "cannot read nope: No such file or directory", "one query"),
        ("sql -f folder", "cannot read folder: Is a directory", "one query"),
        ("sql -f latin", "cannot read latin: it is not UTF-8 text", "one query"),
        ("forget t --keys nope", "cannot read nope: No such file or directory", "can read"),
        ("forget t --keys folder", "cannot read folder: Is a directory", "can read"),
        ("forget t --keys latin", "cannot read latin: it is not UTF-8 text", "save the file"),
        (
            "cost p.yaml --templates nope",
            "nope has no templates that can be read: No such file or directory",
            "usually cdk.out",
        ),
        (
            "cost p.yaml --templates folder",
            "folder has no templates that can be read: manifest.json: No such file or directory",
            "usually cdk.out",
        ),
        (
            "cost p.yaml --prices nope",
            "could not read the prices in nope: No such file or directory",
            "write a JSON object",
        ),
        ("cost p.yaml --gb-day inf", "invalid --gb-day inf", "from 0 to 1e9"),
        ("cost p.yaml --events-s 1e300", "invalid --events-s 1e+300", "from 0 to 1e9"),
        ("forget t 1 --grace 25h", "invalid --grace '25h'", "a span of at most 24h"),
        ("status --environment dev", TARGET, "unlike in `cdclake plan`"),
        ("status --file p.yaml", TARGET, "add --target aws"),
        (
            "schema --doc tables.key",
            "the pipeline file has no key 'tables.key'",
            "did you mean 'tables.NAME.key' or 'tables' or 'tables.NAME'?",
        ),
        (
            "init --update p.yaml --from-db postgresql://u:p@127.0.0.1:1/d",
            "no connection to the source at 127.0.0.1:1: Connection refused",
            "check that the server is running",
        ),
    ],
)
def test_a_message_shows_what_was_typed(
    words: str, message: str, remedy: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(VALID)
    Path("latin").write_bytes("Köln".encode("latin-1"))
    Path("folder").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    error, _, shown = capsys.readouterr().err.removesuffix("\n").partition("\n")
    assert (ended.value.code, error) == (2, f"error: {message}")
    assert shown.startswith("remedy: ") and remedy in shown


def test_a_purge_without_a_lake_deletes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit):
        main(["down", "--purge"])
    assert capsys.readouterr().out == "nothing was running; there is no lake to delete\n"


@pytest.mark.parametrize("words", ["demo", "demo --database pagila"])
def test_a_demo_on_another_system_fetches_nothing(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetch(*_: object) -> None:
        raise AssertionError("fetched")

    monkeypatch.delenv("CDCLAKE_PAGILA", raising=False)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(installed, "ensure_fetched", fetch)
    monkeypatch.setattr(PinnedFiles, "fetch", fetch)
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert "the local lake does not start on Darwin" in capsys.readouterr().err
