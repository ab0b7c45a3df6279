"""The navigation of the docs is complete, llms.txt follows it, and planted faults are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.heading_anchors import slugify
from scripts.llms_page import FILE as LLMS
from scripts.llms_page import llms_page
from scripts.navigation import Navigation, Section, first_sentence, problems, read_navigation
from scripts.site_links import foreign_resources, missing_targets
from tests.unit.markdown import PROJECT, links, pages, without_fences

# GitHub renders both as lists, the site's Markdown does not.
LIST_AFTER_TEXT = re.compile(r"^(?![-*+|#<> ]|\d+\.)\S.*\n(?:- |\d+\. )", re.M)
NESTED_BY_LESS_THAN_FOUR = re.compile(r"^ {1,3}(?:[-*] |\d+\. )", re.M)


def test_navigation_has_every_page_once() -> None:
    assert problems(read_navigation()) == []


def test_navigation_lists_the_pages_that_the_docs_tests_read() -> None:
    listed = {PROJECT / page for page in read_navigation().pages()}
    assert {page for page in pages() if ".github" not in page.parts} == listed


def lists_lost_on_the_site(text: str) -> list[str]:
    shown = without_fences(text)
    return [*LIST_AFTER_TEXT.findall(shown), *NESTED_BY_LESS_THAN_FOUR.findall(shown)]


@pytest.mark.parametrize("page", read_navigation().pages())
def test_lists_are_lists_on_the_site(page: str) -> None:
    assert lists_lost_on_the_site((PROJECT / page).read_text()) == []


@pytest.mark.parametrize("lost", ["Text:\n- a\n", "Text:\n1. a\n", "- a\n  - b\n", "- a\n  1. b\n"])
def test_planted_lists_are_found(lost: str) -> None:
    assert len(lists_lost_on_the_site(lost)) == 1
    assert lists_lost_on_the_site(lost.replace("\n", "\n\n").replace("  ", "    ")) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("README.md", "tests/README.md", "docs/a.md", "docs/deep/b.md", "docs/deep/c.md"):
        page = tmp_path / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# {name}\n")
    return tmp_path


def test_planted_faults_of_the_navigation_are_found(tree: Path) -> None:
    sections = (Section("One", ("docs/a.md", "docs/gone.md", "docs/a.md", "docs/deep/b.md")),)
    assert problems(Navigation("README.md", sections), tree) == [
        "docs/navigation.toml lists docs/gone.md, which does not exist",
        "docs/deep/c.md is not in docs/navigation.toml: add it to a section",
        "tests/README.md is not in docs/navigation.toml: add it to a section",
        "docs/navigation.toml lists docs/a.md 2 times",
    ]


def test_pattern_holds_the_pages_that_are_listed_nowhere_else(tree: Path) -> None:
    (tree / "docs/navigation.toml").write_text(
        'home = "README.md"\n'
        '[[sections]]\ntitle = "One"\npages = ["docs/deep/c.md"]\n'
        '[[sections]]\ntitle = "Two"\npages = ["docs/a.md", "docs/deep/*.md"]\n'
    )
    assert read_navigation(tree).pages() == [
        *("README.md", "docs/deep/c.md", "docs/a.md", "docs/deep/b.md"),
    ]


def test_llms_txt_is_current() -> None:
    assert LLMS.read_text(encoding="utf-8") == llms_page(), "run `make docs`"


def test_llms_txt_has_one_line_for_each_page() -> None:
    navigation = read_navigation()
    lines = [line for line in llms_page().splitlines() if line.startswith("- [")]
    linked = [str(file.relative_to(PROJECT)) for file, _ in links(LLMS)]
    assert linked == navigation.pages()[1:]
    assert len(lines) == len(linked)


def test_first_sentence_is_that_of_the_first_paragraph(tree: Path) -> None:
    text = "# Title\n\n1. A list.\n\nThe `key` is [a word](x.md), e.g. one\nof many. More.\n"
    (tree / "docs/a.md").write_text(text)
    assert first_sentence("docs/a.md", tree) == "The key is a word, e.g. one of many."


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What <t>_current costs", "what-t_current-costs"),
        ("A - b: c, d", "a---b-c-d"),
        ("1. cdclake's own", "1-cdclakes-own"),
    ],
)
def test_anchors_are_githubs(heading: str, anchor: str) -> None:
    assert slugify()(heading, "-") == anchor


def test_planted_addresses_are_found(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "page.html"
    page.parent.mkdir()
    (tmp_path / "a file.txt").write_text("")
    page.write_text(
        '<link rel="canonical" href="https://x.test/"><a href="https://x.test/">fine</a>'
        '<a href="../a%20file.txt#x">fine</a><a href="#here">fine</a><a href="..">a folder</a>'
        '<a href="gone.html">gone</a><img src="../gone.png">'
        '<script src="https://cdn.test/x.js"></script><link rel="stylesheet" href="//cdn.test/x">'
    )
    assert sorted(missing_targets(tmp_path)) == [
        "docs/page.html: .. does not exist",
        "docs/page.html: ../gone.png does not exist",
        "docs/page.html: gone.html does not exist",
    ]
    assert sorted(foreign_resources(tmp_path)) == [
        "docs/page.html: loads //cdn.test/x",
        "docs/page.html: loads https://cdn.test/x.js",
    ]
