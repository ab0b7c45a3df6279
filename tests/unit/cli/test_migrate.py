"""`cdclake migrate`: the file's version is the current one, or the file is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli.main import main
from tests.unit.config.pipelines import VALID

Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: Any) -> Run:
    """Runs the verb on a file with this text: (exit code, standard output, standard error)."""

    def run_verb(text: str, *options: str) -> tuple[object, str, str]:
        file = tmp_path / "p.yaml"
        file.write_text(text)
        with pytest.raises(SystemExit) as ended:
            main(["migrate", str(file), *options])
        assert file.read_text() == text
        out, err = capsys.readouterr()
        return ended.value.code, *(part.replace(str(file), "p.yaml") for part in (out, err))

    return run_verb


def test_a_file_of_the_current_version_is_left_as_it_is(run: Run) -> None:
    code, out, _ = run(VALID, "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown == {"ok": True, "changed": False, "version": 1, "file": shown["file"]}
    assert run(VALID) == (0, "p.yaml has version 1, the current one: nothing to migrate\n", "")


@pytest.mark.parametrize(
    ("version", "place", "cause", "remedy"),
    [
        ("version: 2", "1:10", "`version` is 2, and this cdclake", "install the cdclake that"),
        ("version: 0", "1:10", "`version` is 0, and this cdclake", "install the cdclake that"),
        ("version: true", "1:10", "`version` is true, and this", "write `version: 1`"),
        ("version: '1'", "1:10", "`version` is '1', and this", "write `version: 1`"),
        ("version: ~", "1:10", "`version` is missing", "add `version: 1`"),
        ("# none", "1:1", "`version` is missing", "add `version: 1`"),
    ],
)
def test_an_unknown_or_missing_version_is_refused_with_its_line(
    run: Run, version: str, place: str, cause: str, remedy: str
) -> None:
    text = VALID.replace("version: 1", version).replace("name: shop", "nmae: shop")
    code, out, err = run(text)
    assert (code, out) == (2, "")
    assert f"p.yaml:{place}: {cause}" in err
    assert remedy in err
    assert "nmae" not in err  # another version may have other keys
    code, out, _ = run(text, "--json")
    shown = json.loads(out)
    assert (code, shown["ok"]) == (2, False)
    assert f"p.yaml:{place}: {cause}" in shown["error"]["message"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (VALID.replace("name: shop", "nmae: shop"), "p.yaml:2:1: unknown key 'nmae'"),
        (VALID + "name: two\n", "p.yaml:11:1: the key 'name' is duplicated"),
        ("version: [", "not valid YAML"),
        ("", "the file is empty"),
    ],
)
def test_an_invalid_file_is_refused_as_by_validate(run: Run, text: str, problem: str) -> None:
    code, _, err = run(text)
    assert code == 2
    assert problem in err
