"""The navigation of the docs: their pages in the reader's order, with titles and descriptions."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = Path("docs/navigation.toml")
INDEXES = ("docs/README.md", "docs/runbooks/README.md")
DECISIONS = "docs/decisions/"
_HEADING = re.compile(r"^# (.+)$", re.M)
_INDEX_ROW = re.compile(r"^\| \[[^\]]+\]\(([^)#]+)\) \| (.+?) \|$", re.M)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NO_PARAGRAPH = re.compile(r"[#|`<-]|\d+\.")
_SENTENCE = re.compile(r"(.+?[.:])(?:\s+[A-Z`\[*]|$)", re.S)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the navigation, and its pages in order."""

    title: str
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Navigation:
    """The home page and the sections; pages are named by their paths in the repository."""

    home: str
    sections: tuple[Section, ...]

    def pages(self) -> list[str]:
        """Return every page, in order."""
        return [self.home, *(page for section in self.sections for page in section.pages)]


def read_navigation(root: Path = ROOT) -> Navigation:
    """Read docs/navigation.toml; a pattern becomes the pages that are listed nowhere else."""
    content = tomllib.loads((root / FILE).read_text())
    listed = {page for section in content["sections"] for page in section["pages"]}
    sections = [
        Section(
            section["title"],
            tuple(page for entry in section["pages"] for page in _expand(entry, listed, root)),
        )
        for section in content["sections"]
    ]
    return Navigation(content["home"], tuple(sections))


def _expand(entry: str, listed: set[str], root: Path) -> Iterator[str]:
    if "*" not in entry:
        yield entry
    else:
        found = sorted(str(path.relative_to(root)) for path in root.glob(entry))
        yield from (page for page in found if page not in listed)


def problems(navigation: Navigation, root: Path = ROOT) -> list[str]:
    """Return what is wrong with the navigation: a page that is missing, unlisted or repeated."""
    pages = navigation.pages()
    required = [*root.glob("*.md"), root / "tests/README.md", *(root / "docs").rglob("*.md")]
    names = sorted(str(path.relative_to(root)) for path in required)
    return [
        *(f"{FILE} lists {page}, which does not exist" for page in sorted({*pages} - {*names})),
        *(f"{page} is not in {FILE}: add it to a section" for page in sorted({*names} - {*pages})),
        *(
            f"{FILE} lists {page} {count} times"
            for page, count in Counter(pages).items()
            if count > 1
        ),
    ]


def page_title(page: str) -> str:
    """Return the page's first heading, without markup."""
    found = _HEADING.search((ROOT / page).read_text())
    if found is None:
        raise ValueError(f"{page} has no heading")
    return _plain(found[1])


def descriptions() -> dict[str, str]:
    """Return what the tables of the index pages say about the pages that they link."""
    return {
        str((ROOT / index).parent.joinpath(target).resolve().relative_to(ROOT)): _plain(text)
        for index in INDEXES
        for target, text in _INDEX_ROW.findall((ROOT / index).read_text())
    }


def first_sentence(page: str, root: Path = ROOT) -> str:
    """Return the first sentence of the page's first paragraph."""
    paragraphs = (root / page).read_text().split("\n\n")
    text = next(part for part in paragraphs if not _NO_PARAGRAPH.match(part))
    found = _SENTENCE.match(text)
    return _plain(" ".join((found[1] if found else text).split()))


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("`", "").replace("**", "").strip()
