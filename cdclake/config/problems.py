"""Problems of a pipeline file: the place, the message and the remedy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from cdclake.errors import InputError
from cdclake.passwords import without_passwords

_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake, without passwords; sorts by its place. Line and column count from 1."""

    line: int
    column: int
    message: str
    remedy: str

    def __post_init__(self) -> None:
        """Mask passwords in the texts: they are printed, and kept in the logs of CI."""
        for name in ("message", "remedy"):
            object.__setattr__(self, name, without_passwords(getattr(self, name)))

    def render(self, file: str) -> str:
        """Return `file:line:column: message; remedy`, which editors and CI can jump to."""
        return f"{file}:{self.line}:{self.column}: {self.message}; {self.remedy}"


class Refused(ValueError):
    """Invalid value in the file; it becomes a `Problem` at its place."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message


def check_distinct(values: list[str]) -> list[str]:
    """Return `values` if they are distinct."""
    for value in values:
        if values.count(value) > 1:
            raise Refused(f"{value!r} is listed twice", "remove one of the two")
    return values


class InvalidPipeline(InputError):
    """Invalid pipeline file; `problems` holds every problem, the message the first few."""

    code = "invalid_pipeline"

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        lines = [problem.render(file) for problem in problems[:_MAX_SHOWN]]
        if len(problems) > _MAX_SHOWN:
            lines.append(f"... and {len(problems) - _MAX_SHOWN} more")
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(
            "\n".join([f"{file} has {count}:", *lines]),
            f"correct the file; `cdclake validate {shlex.quote(file)}` lists every problem",
        )
        self.args = (file, tuple(problems))
        self.file = file
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return self.message


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return the distinct problems in the file's order."""
    return sorted(set(problems))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for the nearest of `known`, or an empty string."""
    nearest = get_close_matches(word.lower(), list(dict.fromkeys(known)), n=3, cutoff=0.6)
    if not nearest:
        return ""
    return f"did you mean {' or '.join(repr(match) for match in nearest)}?"
