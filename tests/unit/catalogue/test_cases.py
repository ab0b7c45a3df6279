"""Each case of the catalogue can be selected by its id, and what `cases.yaml` names exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tests.cases import listed_cases, proves
from tests.model.scenarios import cases
from tests.source_tree import PROJECT
from tests.unit.test_docstring_examples import MODULES

# The catalogue's ids: letter and numbers. Missing numbers were never used or were merged.
IDS = {
    "O": (*range(1, 9), 10, 11, 12, 14, 15),
    "S": (1, 3, 4, 5, 7, 8, 10, 11),
    "P": (1, 2, 4, 5, 6, 7, 8, 10, 11, 13),
    "D": (1, 2, 4, 5, 6, 7, 8, 11, 12),
    "T": (1, 3, 5, 6, 9, 10, 11, 12),
    "Y": (1, 2, 4, 5, 6, 7, 9, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21),
    "E": (1, 3, 4, 5, 6, 7, 8, 10, 11, 12),
    "F": (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15),
    "I": (1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 14, 15),
    "W": (1, 2, 3, 4, 5, 6, 7, 8, 10, 12),
    "U": (1, 2, 3, 4),
}
ALL = {f"{letter}{number}" for letter, numbers in IDS.items() for number in numbers}


def test_each_id_is_a_scenario_or_is_listed() -> None:
    assert len(ALL) == 115
    scenarios = {case.id.partition("-")[0] for case in cases()}
    assert ALL - scenarios - set(listed_cases()) == set()


def test_the_page_separates_cases_with_tests_from_those_without() -> None:
    page = (PROJECT / "docs/catalogue.md").read_text()
    shown, _, not_covered = page.partition("## Not covered")
    tested = {case for case, listed in listed_cases().items() if isinstance(listed, list)}
    assert tested - _ids(shown) == set()
    assert _ids(not_covered) & tested == set()
    assert set(listed_cases()) - tested - _ids(not_covered) == {"F10"}  # a deliberate difference


def _ids(text: str) -> set[str]:
    """Return the ids that a text has, with those of its ranges."""
    found = re.findall(r"\b([A-Z])(\d{1,2})(?:-\1(\d{1,2}))?\b", text)
    return {f"{a}{n}" for a, low, high in found for n in range(int(low), int(high or low) + 1)}


def test_listed_tests_exist() -> None:
    names = {
        name for listed in listed_cases().values() if isinstance(listed, list) for name in listed
    }
    missing = [name for name in sorted(names) if not _exists(name)]
    assert missing == []


@pytest.mark.parametrize(
    ("node", "case", "proved"),
    [
        ("tests/a.py::test_case[T3-words-one-delta]", "T3", True),
        ("tests/a.py::test_case[T13-words]", "T1", False),
        ("tests/a.py::test_x[y]", "E3", True),
        ("tests/a.py::test_xy", "E3", False),
        ("tests/b.py::test_any", "E3", True),
    ],
)
def test_proves(node: str, case: str, proved: bool) -> None:
    assert proves(node, case, ["tests/a.py::test_x", "tests/b.py"]) == proved


@pytest.mark.parametrize(
    ("case", "code", "said"),
    [("T3", 0, "T3-"), ("S10", 4, "topic is not subscribed"), ("D99", 4, "proves case D99")],
)
def test_pytest_selects_by_case(case: str, code: int, said: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            "--case",
            case,
            "tests/unit/catalogue/test_reference.py",
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def _exists(name: str) -> bool:
    path, _, test = name.partition("::")
    file = PROJECT / path
    if not file.exists():
        return False
    tree = ast.parse(file.read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    function, _, parameter = test.partition("[")
    if parameter.removesuffix("]") not in ("", *MODULES):  # no other tests are listed by parameter
        return False
    return not test or function in functions
