"""Extras: the modules by which a missing one is recognized are those of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from cdclake import __version__, extras
from cdclake.extras import LOCAL, MODULES, missing_extra, missing_modules
from tests.source_tree import PROJECT
from tests.test_import_rules import THIRD_PARTY

_NAMES = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
_DISTRIBUTIONS = packages_distributions()


def distributions(requirements: list[str]) -> set[str]:
    found = {re.split(r"[\[=]", line)[0] for line in requirements}
    return {normal(name) for name in found - {"cdclake"}}


def normal(name: str) -> str:
    return re.sub(r"[._-]+", "-", name).lower()


@pytest.mark.parametrize("extra", MODULES)
def test_modules_are_those_of_the_extras_packages(extra: str) -> None:
    named = {normal(_DISTRIBUTIONS[module][0]) for module in MODULES[extra]}
    assert named == distributions(_NAMES["optional-dependencies"][extra])


def test_every_imported_package_is_of_the_core_or_of_an_extra() -> None:
    imported = {name for names in THIRD_PARTY.values() for name in names}
    core = distributions(_NAMES["dependencies"])
    extras = {module for modules in MODULES.values() for module in modules}
    others = {
        module
        for module in imported - extras
        if not {normal(name) for name in _DISTRIBUTIONS[module]} & core
    }
    # They come with boto3, pydantic and pyspark.
    assert others == {"botocore", "pydantic_core", "py4j"}


def test_a_missing_module_names_its_extra() -> None:
    found = missing_extra(ModuleNotFoundError("no", name="pyspark.sql"))
    assert found is not None and found.remedy == "run `make setup` in the project's folder"
    assert "'pyspark'" in found.message
    assert missing_extra(ModuleNotFoundError("no", name="cdclake.gone")) is None
    assert missing_extra(ModuleNotFoundError("no")) is None


def remedy_of(monkeypatch: pytest.MonkeyPatch, direct_url: str | None) -> str:
    installed = SimpleNamespace(read_text=lambda name: direct_url, version=__version__)
    monkeypatch.setattr(extras, "distribution", lambda _: installed)
    found = missing_extra(ModuleNotFoundError("no", name="duckdb"))
    assert found is not None
    return found.remedy


def test_an_extra_is_of_the_installed_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"file:///my%20wheels/cdclake-{__version__}-py3-none-any.whl"
    remedy = remedy_of(monkeypatch, f'{{"url": "{url}", "archive_info": {{}}}}')
    assert remedy.startswith(f'install "cdclake[read] @ {url}" with the tool')


def test_no_remedy_installs_from_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    example = f'install "cdclake[read] @ file:///path/to/cdclake-{__version__}-py3-none-any.whl"'
    assert remedy_of(monkeypatch, None).startswith(example)


def test_missing_modules_are_those_that_cannot_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_modules(LOCAL) == []
    monkeypatch.setattr(
        "cdclake.extras.find_spec", lambda name: None if name == "moto" else find_spec(name)
    )
    assert missing_modules(LOCAL) == ["moto"]
