"""The three measures of the project's prose: docstring openings, avoided phrases, shown strings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.language.passages import Kind, Passage, passages

MAX_OPENINGS_PERCENT = 2
MAX_PHRASES_PER_1000_WORDS = 2

OPENINGS = re.compile(
    r"\s*(What|Whether|How|Why|Where|Which|When|That|Those|Of|By|Who|From|Up\s+to|Until|So|As|To)\b"
)
_AVOIDED = (
    "(some|no|any)body|whoever",
    "any more|no more",
    "of (ours|theirs|yours|its own|their own)",
    "anew",
    "mend(s|ed|ing)?",
    "brought up|tak(e|en) (up|along)",
    "heard of|troubles?",
    "(by|of|in|from|to|at|on|under|below|behind|with|for) (which|whom|whose)",
    "beside",
    "(tells?|told|says?) (that|which|what|whether|it)",
)
PHRASES = re.compile(rf"\b({'|'.join(_AVOIDED)})\b".replace(" ", r"\s+"), re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass(frozen=True, slots=True)
class Finding:
    """One match: `measure` is `opening`, `phrase` or `shown`."""

    path: str
    line: int
    measure: str
    match: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.measure}: {self.match}"


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts of a file or of a group of files."""

    docstrings: int = 0
    words: int = 0
    opening: int = 0
    phrase: int = 0
    shown: int = 0

    def __add__(self, other: Measures) -> Measures:
        return Measures(
            self.docstrings + other.docstrings,
            self.words + other.words,
            self.opening + other.opening,
            self.phrase + other.phrase,
            self.shown + other.shown,
        )

    @property
    def openings_percent(self) -> float:
        """Share of docstrings that start with a listed word."""
        return 100 * self.opening / max(self.docstrings, 1)

    @property
    def phrases_per_1000_words(self) -> float:
        """Rate of avoided phrases in docstrings, comments and pages."""
        return 1000 * self.phrase / max(self.words, 1)

    @property
    def are_final(self) -> bool:
        """True if the final limits hold."""
        return (
            self.openings_percent <= MAX_OPENINGS_PERCENT
            and self.phrases_per_1000_words <= MAX_PHRASES_PER_1000_WORDS
            and self.shown == 0
        )

    def __str__(self) -> str:
        return (
            f"{self.opening} of {self.docstrings} docstrings ({self.openings_percent:.1f} %),"
            f" {self.phrase} phrases in {self.words} words"
            f" ({self.phrases_per_1000_words:.1f} per 1,000), {self.shown} in shown strings"
        )


def find(path: str, source: str) -> list[Finding]:
    """Return every match in a file, in the order of its lines."""
    found = [match for part in passages(path, source) for match in _matches(path, part)]
    return sorted(found, key=lambda finding: finding.line)


def measure(path: str, source: str) -> Measures:
    """Count the docstrings, words and matches of a file."""
    parts = list(passages(path, source))
    counts = Counter(found.measure for part in parts for found in _matches(path, part))
    return Measures(
        docstrings=sum(part.kind is Kind.DOCSTRING for part in parts),
        words=sum(_words(part) for part in parts),
        **counts,
    )


def total(measures: Iterable[Measures]) -> Measures:
    """Add up the measures of several files."""
    return sum(measures, Measures())


def _words(part: Passage) -> int:
    return 0 if part.kind is Kind.SHOWN else len(_WORD.findall(part.text))


def _matches(path: str, part: Passage) -> Iterator[Finding]:
    if part.kind is Kind.DOCSTRING and OPENINGS.match(part.text):
        yield Finding(path, part.line, "opening", " ".join(part.text.split()[:6]) + " ...")
    measure = "shown" if part.kind is Kind.SHOWN else "phrase"
    for match in PHRASES.finditer(part.text):
        line = part.line + part.text.count("\n", 0, match.start())
        yield Finding(path, line, measure, _in_context(part.text, match))


def _in_context(text: str, match: re.Match[str]) -> str:
    before = " ".join(text[max(match.start() - 30, 0) : match.start()].split())
    after = " ".join(text[match.end() : match.end() + 30].split())
    return f"{before} [{' '.join(match[0].split())}] {after}"
