"""One check of `cdclake doctor`: its result, and the remedy if it did not pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cdclake.errors import CdcError

State = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of one check; `remedy` is empty if it passed."""

    name: str
    state: State
    detail: str
    remedy: str = ""


def passed(name: str, detail: str) -> Check:
    """Return a check that passed."""
    return Check(name=name, state="ok", detail=detail)


def failed(name: str, detail: str, remedy: str) -> Check:
    """Return a check that failed."""
    return Check(name=name, state="failed", detail=detail, remedy=remedy)


def warned(name: str, detail: str, remedy: str) -> Check:
    """Return a check whose result may become a problem."""
    return Check(name=name, state="warning", detail=detail, remedy=remedy)


def skipped(name: str, detail: str) -> Check:
    """Return a check that could not be made, with the reason."""
    return Check(name=name, state="skipped", detail=detail)


def guarded(name: str, check: Callable[[], Iterable[Check]]) -> list[Check]:
    """Run a check; a CdcError that it raises becomes a failed check of this name."""
    try:
        return list(check())
    except CdcError as error:
        return [failed(name, error.message, error.remedy)]


def summary(checks: Iterable[Check]) -> dict[str, Any]:
    """Return the object that `cdclake doctor --json` prints; `ok` if no check has failed."""
    found = list(checks)
    return {
        "ok": all(check.state != "failed" for check in found),
        "checks": [asdict(check) for check in found],
    }
