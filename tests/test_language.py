"""The prose keeps to STYLE.md: the measures hold in the tree, and notice every kind of relapse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.language.budget import read_budget, violations
from tests.language.measures import Measures, find, measure
from tests.language.relapses import DOCSTRINGS, OPENINGS, PHRASES, PROSE, SHOWN
from tests.language.tree import PROJECT, covered, group_of, measure_groups


def measures_found(path: str, source: str) -> list[str]:
    return [finding.measure for finding in find(path, source)]


def ruff(*arguments: str, source: str = "") -> str:
    command = [sys.executable, "-m", "ruff", "check", "--quiet", "--output-format", "concise"]
    command += arguments
    run = subprocess.run(command, cwd=PROJECT, input=source, capture_output=True, text=True)
    assert run.stderr == ""
    return run.stdout


def test_ruff_accepts_the_tree():
    assert ruff(".") == ""


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('"""Module."""\n\n\ndef f():\n    """Returns the row."""\n', "D401"),
        ('"""Module."""\n\n\ndef f():\n    """Return the\n    row.\n    """\n', "D205"),
        ('"""Module."""\n\n\ndef f():\n    return 1\n', "D103"),
    ],
)
def test_ruff_reports_a_relapse_outside_the_listed_folders(source, rule):
    assert rule in ruff("--stdin-filename", "new_room/a.py", "-", source=source)


def test_tree_meets_its_limits():
    assert violations(measure_groups(), read_budget()) == []


def test_tree_covers_the_product_and_its_pages():
    files = {file.relative_to(PROJECT).as_posix() for file in covered()}

    assert {"app.py", "README.md", "STYLE.md", "Makefile", "cdclake/errors.py"} <= files
    assert {path.split("/")[0] for path in files} >= {"cdclake", "glue_jobs", "lambda", "stacks"}
    assert {"docs", "docs/runbooks", "docs/decisions"} <= {group_of(path) for path in files}
    assert not {path for path in files if path.startswith("tests/")}


@pytest.mark.parametrize("word", OPENINGS)
def test_find_reports_each_listed_opening(word):
    source = DOCSTRINGS["function"].format(f"{word} the rows are")

    assert measures_found("local/a.py", source) == ["opening"]


@pytest.mark.parametrize("template", DOCSTRINGS.values(), ids=DOCSTRINGS)
def test_find_reports_an_opening_of_every_docstring(template):
    assert measures_found("local/a.py", template.format("What the rows are")) == ["opening"]


@pytest.mark.parametrize("text", ["Return what", "Assign", "Topic", "Sort", "Offset", "Bytes"])
def test_find_accepts_other_openings(text):
    assert measures_found("local/a.py", DOCSTRINGS["function"].format(text)) == []


@pytest.mark.parametrize("phrase", PHRASES)
def test_find_reports_each_phrase(phrase):
    assert measures_found("local/a.py", f"# The row {phrase}\n") == ["phrase"]


@pytest.mark.parametrize("template", PROSE.values(), ids=PROSE)
def test_find_reports_a_phrase_in_all_prose(template):
    assert measures_found("local/a.py", template.format("Start anew")) == ["phrase"]


@pytest.mark.parametrize("path", ["README.md", "docs/jobs.md", "docs/runbooks/lag.md", "run.sh"])
def test_find_reports_a_phrase_on_a_page(path):
    assert measures_found(path, "# Start anew\n") == ["phrase"]


@pytest.mark.parametrize(
    ("path", "source", "line"),
    [
        ("a.py", 'def f():\n    """Return the row.\n\n    It is not any\n    more.\n    """\n', 4),
        ("a.py", "x = 1\n# It is not any\n# more.\n", 2),
        ("a.md", "The rows that are not any\nmore.\n", 1),
    ],
)
def test_find_reports_a_wrapped_phrase_at_its_line(path, source, line):
    assert [(found.line, found.measure) for found in find(path, source)] == [(line, "phrase")]


@pytest.mark.parametrize("template", SHOWN.values(), ids=SHOWN)
def test_find_reports_a_phrase_in_a_shown_string(template):
    assert measures_found("local/a.py", template.format("any more")) == ["shown"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("cdclake/cli/up.py", 'def up():\n    """Start the lake anew."""\n'),
        ("cdclake/config/model.py", 'class Lake(Section):\n    """A lake of yours."""\n'),
        ("Makefile", "record: setup ## Record anew\n"),
    ],
    ids=["command", "model", "make target"],
)
def test_find_reports_a_docstring_that_users_see(path, source):
    assert sorted(measures_found(path, source)) == ["phrase", "shown"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", 'facts = {"brought_up": 1, "trouble": 2}\n'),
        ("a.py", "trouble = beside = 1  # Count `anew` rows, ``any more``.\n"),
        ("a.md", "```\nanew\n```\nUse `anew`, [a page](anew.md).\n~~~\nbeside\n~~~\n"),
        ("docs/decisions/0001-x.md", "# Use tags\n\nIt is done anew.\n"),
        ("pom.xml", "<!-- anew -->\n"),
    ],
    ids=["keys", "names", "code on a page", "body of a decision", "other format"],
)
def test_find_skips_code_and_history(path, source):
    assert find(path, source) == []


def test_measure_counts_docstrings_and_words_outside_code():
    source = '"""Two words."""\n\n\nclass C:\n    """Row of `x`."""\n\n\nx = "not a word"  # noqa\n'

    assert measure("a.py", source) == Measures(docstrings=1, words=4)


def test_tree_measures_a_linked_folder_once(tmp_path: Path):
    jobs = tmp_path / "glue_jobs"
    jobs.mkdir()
    (jobs / "a.py").write_text("# Read the rows anew.\n")
    (tmp_path / "cdclake").mkdir()
    (tmp_path / "cdclake/jobs").symlink_to(jobs)
    (tmp_path / "STYLE.md").write_text("Two words.\n")

    assert measure_groups(tmp_path) == {
        "(root)": Measures(words=2),
        "glue_jobs": Measures(words=4, phrase=1),
    }
    assert violations(measure_groups(tmp_path), {})[0].startswith("glue_jobs: ")
