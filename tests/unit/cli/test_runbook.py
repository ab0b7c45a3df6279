"""`cdclake runbook`: the list, one page as it is, and names that are none."""

from __future__ import annotations

import json

import pytest

from cdclake.cli.main import main
from tests.unit.runbooks import PAGES


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["runbook", *words])
    return ended.value.code, *capsys.readouterr()


def test_runbooks_are_listed_with_their_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--json")
    answer = json.loads(out)
    assert (code, answer["ok"]) == (0, True)
    assert [each["name"] for each in answer["runbooks"]] == sorted(PAGES)
    for each in answer["runbooks"]:
        assert f"# {each['title']}" == PAGES[each["name"]].splitlines()[0]
    lines = run(capsys)[1].splitlines()
    assert len(lines) == len(PAGES)
    assert lines[0].split() == ["README", "Runbooks"]
    assert ["lost-slot", "Lost", "slot"] in [line.split() for line in lines]


@pytest.mark.parametrize("name", ["lag", "README"])
def test_a_runbook_is_printed_as_it_is(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(capsys, name)[:2] == (0, PAGES[name])
    answer = json.loads(run(capsys, name, "--json")[1])
    assert answer == {"ok": True, "name": name, "text": PAGES[name]}


def test_an_unknown_name_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "stoped-table")
    assert code == 2
    assert "no runbook 'stoped-table'" in err
    assert "did you mean 'stopped-table'" in err and "`cdclake runbook` lists them" in err
    assert run(capsys, "../README")[0] == 2
