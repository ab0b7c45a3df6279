"""`pytest --case ID`: only the tests that prove a case of the catalogue."""

from __future__ import annotations

import pytest

from tests.cases import CASE_ID, listed_cases, proves


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--case", default="", help="only tests that prove this case, for example E3")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    case = config.getoption("--case")
    if not case:
        return
    listed = listed_cases().get(case, [])
    if not CASE_ID.fullmatch(case) or isinstance(listed, str):
        raise pytest.UsageError(f"case {case!r}: {listed or 'not an id like E3'}")
    chosen = [item for item in items if proves(item.nodeid, case, listed)]
    if not chosen:
        raise pytest.UsageError(f"no test in these folders proves case {case}")
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
