"""The docs are complete and correct: what they name exists, every page is found, commands work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli.main import commands
from tests.unit.markdown import PROJECT, anchors, blocks, links, pages, spans

PAGES = pages()
DOCS = PROJECT / "docs"
START = DOCS / "README.md"
README_LINES = 150
CONCEPTS = DOCS / "concepts.md"
DEFINED = {
    "wal", "slot", "publication", "lsn", "epoch", "position", "event", "changelog", "state-table",
    "tail", "tombstone", "stamp", "fence", "quarantine", "toast", "unchanged-toast-value",
    "high-water-mark", "late-event", "freshness", "micro-batch", "replay", "redrive", "resync",
    "rebuild", "resume",
}  # fmt: skip
# What people type from. Decisions are records, runbooks have tests of their own.
TYPED_FROM = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "tests/README.md")),
    *(page for page in PAGES if page.parent in (DOCS, DOCS / "how-to", DOCS / "reference")),
]
GENERATED_USAGE = DOCS / "reference" / "commands.md"  # with its brackets; it has its own test


def named(page: Path) -> str:
    return str(page.relative_to(PROJECT))


@cache
def names_of_tests() -> set[str]:
    tests = (PROJECT / "tests").rglob("test_*.py")
    return {name for file in tests for name in re.findall(r"def (test_\w+)", file.read_text())}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_tests_and_files_that_a_page_names_exist(page: Path) -> None:
    words = re.findall(r"`([^`\s]+)`", page.read_text())
    paths = [w for w in words if re.match(r"(cdclake|glue_jobs|lambda|stacks|tests|docs)/", w)]
    missing = [path for path in paths if not list(PROJECT.glob(path.rstrip("/")))]
    names = {word for word in words if re.fullmatch(r"test_\w+", word)}
    assert (missing, names - names_of_tests()) == ([], set())


def test_readme_is_short() -> None:
    assert len((PROJECT / "README.md").read_text().splitlines()) <= README_LINES


def test_readme_has_the_two_commands_in_blocks_of_their_own() -> None:
    assert [block for block in blocks(PROJECT / "README.md", "") if "make" in block.split()] == [
        "make demo\n",
        "make test\n",
    ]


def test_readme_says_that_nothing_has_run_on_aws() -> None:
    text = (PROJECT / "README.md").read_text()
    assert "**Nothing here has ever run on AWS.**" in text[: text.index("## ")]
    assert "what-is-not-there-yet" in anchors(PROJECT / "README.md")


def test_every_page_is_reached_from_the_start() -> None:
    reached, ahead = {START}, [START]
    while ahead:
        for file, _ in links(ahead.pop()):
            if file.suffix == ".md" and file.is_relative_to(DOCS) and file not in reached:
                reached.add(file)
                ahead.append(file)
    assert sorted(set(DOCS.rglob("*.md")) - reached) == []


def test_concepts_defines_each_term_once() -> None:
    terms = re.findall(r'<a id="([^"]+)">', CONCEPTS.read_text())
    assert sorted(terms) == sorted(set(terms))
    assert set(terms) >= DEFINED


def broken_links(page: Path) -> Iterator[str]:
    for file, anchor in links(page):
        if not file.exists():
            yield f"{file} does not exist"
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
            yield f"{file} has no #{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_resolves(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_planted_links_are_found(tmp_path: Path) -> None:
    other, page = tmp_path / "other.md", tmp_path / "page.md"
    other.write_text(
        '# A `b` c\n\n## Twice\n\n## Twice\n\n<a id="own"></a>\n```\n# no heading\n```\n'
    )
    good = ["other.md", "other.md#a-b-c", "other.md#twice-1", "other.md#own", "https://x.test/#y"]
    bad = ["gone.md", "other.md#no-heading", "other.md#twice-2", "#nowhere"]
    page.write_text(" ".join(f"[x]({target})" for target in good + bad))
    assert len(list(broken_links(page))) == len(bad)


@cache
def verbs() -> dict[str, Any]:
    return commands()


def lines(page: Path, program: str) -> list[str]:
    """Return the complete command lines of a program in the page's blocks."""
    shown = [] if page == GENERATED_USAGE else blocks(page, "sh", "")
    typed = [line for block in shown for line in block.splitlines()]  # a drawing is indented
    return [line for line in typed if re.match(rf"(\.venv/bin/)?{program} ", line)]


def split_command(words: list[str]) -> tuple[str, list[str]]:
    """Return the command, of one word or two, and its arguments."""
    two = " ".join(words[1:3])
    return (two, words[3:]) if two in verbs() else (words[1], words[2:])


def unknown_words(words: list[str]) -> list[str]:
    """Return the command if the CLI does not have it, else the options that it does not take."""
    known, (name, rest) = verbs(), split_command(words)
    if words[1:2] == ["--help"]:
        return []
    if name not in known:
        return [name]
    taken = {option for each in known[name].params for option in each.opts} | {"--help", "-h"}
    given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    return sorted(given - taken)


@pytest.mark.parametrize("page", TYPED_FROM, ids=named)
def test_the_cli_takes_every_command_of_a_block(page: Path) -> None:
    for line in lines(page, "cdclake"):
        words = shlex.split(line, comments=True)
        assert unknown_words(words) == [], line
        name, rest = split_command(words)
        verbs()[name].make_context(name, rest)


@pytest.mark.parametrize("page", TYPED_FROM, ids=named)
def test_the_cli_has_every_command_that_the_text_names(page: Path) -> None:
    named_commands = [span.split() for span in spans(page) if re.match(r"cdclake [a-z-]", span)]
    assert [words for words in named_commands if unknown_words(words)] == []


def test_planted_commands_are_found() -> None:
    assert unknown_words(["cdclake", "upp"]) == ["upp"]
    assert unknown_words(["cdclake", "up", "--no-streams", "f.yaml"]) == ["--no-streams"]
    assert unknown_words(["cdclake", "sql", "SELECT 1 - 2", "--at", "1"]) == []


@pytest.mark.parametrize("page", TYPED_FROM, ids=named)
def test_make_has_every_target(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.M))
    typed = [*lines(page, "make"), *(span for span in spans(page) if span.startswith("make "))]
    assert {line.split()[1] for line in typed} - targets == set()
