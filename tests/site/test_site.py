"""The docs' site is built by its locked generator, and a fault of the pages fails the build."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.build_site import SiteError, build_site
from scripts.llms_page import FILE as LLMS
from scripts.navigation import FILE as NAVIGATION
from scripts.navigation import read_navigation
from scripts.site_links import link_targets
from tests.source_tree import PROJECT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site() -> Path:
    done = subprocess.run(
        ["make", "site"], cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return PROJECT / "build" / "site" / "html"


@pytest.fixture
def pages(site: Path, tmp_path: Path) -> Path:
    """A copy of the pages, to plant faults in."""
    root = tmp_path / "root"
    for page in [*read_navigation().pages(), str(NAVIGATION), LLMS.name]:
        copied = root / page
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / page, copied)
    for page in read_navigation().pages():
        for target in link_targets(PROJECT / page):
            copied = root / target.relative_to(PROJECT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            if target.is_file() and not copied.exists():
                shutil.copyfile(target, copied)
    return root


def test_site_has_every_page_as_html_and_markdown(site: Path) -> None:
    for page in read_navigation().pages():
        html = site / page.replace("README.md", "index.md").replace(".md", ".html")
        assert html.is_file() and (site / page).is_file(), page
    assert (site / "llms.txt").read_text() == LLMS.read_text()


def test_search_knows_a_section_of_a_page(site: Path) -> None:
    found = json.loads((site / "search.json").read_text())["items"]
    assert any(item["location"] == "docs/concepts.html" for item in found)
    assert any("late event" in item["text"].lower() for item in found)


def test_recordings_are_played_by_a_local_script(site: Path) -> None:
    assert "AsciinemaPlayer" in (site / "assets" / "asciinema-player.min.js").read_text()
    assert 'src="../assets/asciinema-player.min.js"' in (site / "docs/tutorial.html").read_text()


@pytest.mark.parametrize(
    ("planted", "reported"),
    [
        ("[x](gone.md)", "gone.md"),
        ("[x](concepts.md#no-such-heading)", "no-such-heading"),
        ("[x](../pipelines/gone.yaml)", "pipelines/gone.yaml does not exist"),
        ("![x](https://pictures.test/x.png)", "loads https://pictures.test/x.png"),
    ],
)
def test_a_fault_of_a_page_fails_the_build(
    pages: Path, tmp_path: Path, planted: str, reported: str
) -> None:
    page = pages / "docs/tutorial.md"
    page.write_text(f"{page.read_text()}\n\n{planted}\n")
    with pytest.raises(SiteError) as failed:
        build_site(pages, tmp_path / "build")
    assert reported in str(failed.value)


def test_an_unlisted_page_fails_the_build(pages: Path, tmp_path: Path) -> None:
    (pages / "docs/new.md").write_text("# New\n")
    with pytest.raises(SiteError, match=r"docs/new\.md is not in docs/navigation\.toml"):
        build_site(pages, tmp_path / "build")
