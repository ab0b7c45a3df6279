"""The docs are complete and correct: what they name exists, every page is found, commands work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cdclake.postgres.server import NEWEST, OLDEST
from cdclake.scaffold.new_project import project_files
from tests.unit.markdown import PROJECT, anchors, blocks, links, pages, spans
from tests.unit.typed_commands import (
    CDK_COMMANDS,
    CHECKED,
    STANDARD,
    checked_lines,
    commands_of,
    lines_of,
    make_targets,
    split_command,
    typed_lines,
    unknown_aws_words,
    unknown_words,
    verbs,
)

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
GENERATED_USAGE = DOCS / "reference" / "commands.md"  # its usage lines have brackets


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


@pytest.mark.parametrize(
    "page", ["README.md", "docs/tutorial.md", "docs/how-to/run-a-lake.md", "docs/limits.md"]
)
def test_pages_name_the_versions_of_a_source(page: str) -> None:
    assert f"PostgreSQL {OLDEST} to {NEWEST}" in (PROJECT / page).read_text()


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


def test_views_exist_before_athena_is_compared() -> None:
    compared = [
        (named(page), block.partition("--reader athena")[0])
        for page in PAGES
        for block in blocks(page, "sh")
        if "--reader athena" in block
    ]
    assert compared
    assert [page for page, before in compared if "cdclake views" not in before] == []


def missing_points(page: Path) -> list[str]:
    """Return the numbers of points that the page refers to and the linked page's lists lack."""
    reference = r"\bpoint (\d+)\s+of\s+\[[^\]]*\]\(([^()\s#]+)"
    return [
        number
        for number, target in re.findall(reference, page.read_text())
        if not re.search(rf"^{number}\. ", (page.parent / target).read_text(), re.M)
    ]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_points_of_lists_that_a_page_refers_to_exist(page: Path) -> None:
    assert missing_points(page) == []


def test_a_planted_point_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("1. one\n2. two\n")
    page = tmp_path / "page.md"
    page.write_text("point 2 of [it](other.md#a), point 3 of\n[it](other.md)")
    assert missing_points(page) == ["3"]


@pytest.fixture(scope="module")
def new_readme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The README of a project that `cdclake new` writes."""
    page = tmp_path_factory.mktemp("project") / "README.md"
    page.write_text(project_files("shop-lake", "{}", None)["README.md"])
    return page


def refused_lines(page: Path) -> list[str]:
    """Return the lines of the page's blocks that their program does not take."""
    lines = typed_lines(page) if page == GENERATED_USAGE else checked_lines(page)
    aws = [line for line in lines_of("aws", lines) if unknown_aws_words(line)]
    make = [line for line in lines_of("make", lines) if line.split()[1] not in make_targets()]
    npx = [line for line in lines_of("npx", lines) if not is_of_the_cdk(line)]
    return [*aws, *make, *npx, *(x for x in lines_of("cdclake", lines) if is_refused(x))]


def is_of_the_cdk(line: str) -> bool:
    words = [word for word in line.split()[1:] if word != "--no-install"]
    return words[0] == "cdk" and words[1] in CDK_COMMANDS


def is_refused(line: str) -> bool:
    words = shlex.split(line, comments=True)
    if unknown_words(words):
        return True
    name, rest = split_command(words)
    if name in verbs():
        verbs()[name].make_context(name, rest)
    return False


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_programs_take_every_command_of_a_block(page: Path) -> None:
    assert refused_lines(page) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_line_of_a_shell_block_is_of_a_known_program(page: Path) -> None:
    programs = {line.split()[0] for line in typed_lines(page)}
    assert programs - CHECKED - STANDARD == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_cli_has_every_command_that_the_text_names(page: Path) -> None:
    named_commands = [span.split() for span in spans(page) if re.match(r"cdclake [a-z-]", span)]
    assert [words for words in named_commands if unknown_words(words)] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_make_has_every_target_that_the_text_names(page: Path) -> None:
    typed = [span for span in spans(page) if span.startswith("make ")]
    assert {line.split()[1] for line in typed} - make_targets() == set()


def test_a_new_projects_readme_has_commands_that_are_taken(new_readme: Path) -> None:
    shown = checked_lines(new_readme)
    assert len(lines_of("cdclake", shown)) > 5 and len(lines_of("npx", shown)) > 2
    assert refused_lines(new_readme) == []
    named_commands = [commands_of(span) for span in spans(new_readme)]
    typed = [line for found in named_commands for line in found if line.startswith("cdclake ")]
    assert [line for line in typed if unknown_words(line.split())] == []


def test_a_new_projects_workflow_has_commands_that_are_taken(new_readme: Path) -> None:
    workflow = project_files("shop-lake", "{}", None)[".github/workflows/pipeline.yml"]
    typed = "\n".join(re.findall(r"- run: (.*)", workflow))
    new_readme.write_text(f"```sh\n{typed}\n```\n")
    assert len(checked_lines(new_readme)) == 4
    assert refused_lines(new_readme) == []


@pytest.mark.parametrize(
    "planted",
    [
        "cdclake upp",
        "cdclake up --no-streams f.yaml",
        "CDCLAKE_HOME=x uv run cdclake up --no-streams f.yaml > out.json",
        "cdclake verify --json | cdclake upp",
        "aws glue get-jobb --job-name x",
        "aws glue get-job --job-names x",
        "make no-such-target",
        "npx cdk synthesize",
        "cdclake sql \\\n  --att 1",
    ],
)
def test_planted_commands_are_found(tmp_path: Path, planted: str) -> None:
    page = tmp_path / "page.md"
    fine = "cdclake sql 'SELECT 1 - 2' --at 1\naws glue get-job --job-name x --query Job\n"
    page.write_text(f"1. Type\n   ```sh\n   {fine}\n   ```\n\n```sh\n{planted}\n```\n")
    assert len(refused_lines(page)) == 1


@pytest.mark.parametrize("name", [r"CDCLAKE_HOME=(\S+)", r"cdclake init .*-o (\S+)"])
def test_the_tutorials_other_source_has_another_lake_and_file(name: str) -> None:
    """A lake keeps its source, and `init` overwrites no file."""
    own, existing = (DOCS / "tutorial.md").read_text().split("\n## With an existing database")
    used = [{*re.findall(name, part)} for part in (own, existing)]
    assert all(used) and not used[0] & used[1]
