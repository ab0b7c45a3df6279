"""Cases of the catalogue by id: which tests prove them, and why some have none."""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML

FILE = Path(__file__).with_name("cases.yaml")
CASE_ID = re.compile(r"[A-Z]\d{1,2}")
_PARAMETER = re.compile(r"\[([A-Z]\d{1,2})-")  # a scenario's id begins a test's parameters


def listed_cases() -> dict[str, list[str] | str]:
    """Read tests by case id, `path` or `path::test`; a text is the reason for having none."""
    cases: dict[str, list[str] | str] = YAML(typ="safe").load(FILE)
    return cases


def proves(node: str, case: str, listed: list[str]) -> bool:
    """Return True if the test `node` (pytest's node id) proves the case."""
    scenario = _PARAMETER.search(node)
    if scenario is not None and scenario[1] == case:
        return True
    return any(node == name or node.startswith((f"{name}::", f"{name}[")) for name in listed)
