"""The version of the working tree: builds of it and of a release are never confused."""

from __future__ import annotations

import re

import pytest

from cdclake import __version__
from tests.unit.markdown import PROJECT


def test_a_released_version_has_no_unreleased_changes() -> None:
    changelog = (PROJECT / "CHANGELOG.md").read_text()
    unreleased = changelog.split("\n## [Unreleased]")[1].split("\n## [")[0]
    released = re.findall(r"^## \[(\d[^\]]*)\]", changelog, re.M)
    assert released
    assert "\n- " not in unreleased or __version__ not in released
    assert "\n- " not in unreleased or re.search(r"\.dev\d+$", __version__)


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/own-project.md"])
def test_pages_install_the_wheel_of_this_version(page: str) -> None:
    wheels = re.findall(r"cdclake-(\d\S*?)-py3-none-any\.whl", (PROJECT / page).read_text())
    assert wheels == [__version__]
