"""Measures as they are kept: figures, ratios, targets, and every run behind them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Figure = float | str  # seconds, or a word why there are none
# Figures of costs that have to be at least, or exactly, their target. All others: at most.
_AT_LEAST = frozenset({"changes_per_cpu_second", "events_per_second"})
_EXACT = frozenset({"changelog_tasks", "state_tasks"})


@dataclass(frozen=True, slots=True)
class Bound:
    """How ours has to compare with a peer.

    `>=` bounds how many times as fast ours is, `<=` how many times as long it takes.
    """

    sign: Literal[">=", "<="]
    value: float

    def ratio(self, ours: Figure, peer: Figure) -> float | None:
        """None where one of the two has no figure."""
        if isinstance(ours, str) or isinstance(peer, str):
            return None
        return peer / ours if self.sign == ">=" else ours / peer

    def margin(self, ratio: float | None) -> float:
        """How many times over the bound is met, from 1 on; 0 for a ratio that is not known."""
        if ratio is None:
            return 0.0
        return ratio / self.value if self.sign == ">=" else self.value / ratio

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}x"

    @classmethod
    def parse(cls, text: str) -> Bound:
        """Return the bound of its text."""
        sign, value = text.split()
        return cls(">=" if sign == ">=" else "<=", float(value.rstrip("x")))


@dataclass(frozen=True, slots=True)
class Run:
    """One contender's measured batches: what about, what was wrong in the end, figures of each."""

    contender: str
    subject: Mapping[str, Any]
    wrong: str | None
    figures: Sequence[Mapping[str, Any]]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Run:
        """Return the run of its JSON."""
        about = {k: v for k, v in stored.items() if k not in ("contender", "wrong", "figures")}
        return cls(stored["contender"], about, stored["wrong"], stored["figures"])

    def median(self, figure: str) -> float:
        """Of all batches."""
        return float(statistics.median(batch[figure] for batch in self.figures))

    def as_json(self) -> dict[str, Any]:
        """No times without a right end state."""
        figures = list(self.figures) if self.wrong is None else []
        return {
            "contender": self.contender, **self.subject, "wrong": self.wrong, "figures": figures,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure of ours beside its peers."""

    ours: Figure
    peers: Mapping[str, Figure]
    targets: Mapping[str, Bound]  # by peer
    runs: Sequence[Run]

    def ratios(self) -> dict[str, float | None]:
        """By peer."""
        return {peer: b.ratio(self.ours, self.peers[peer]) for peer, b in self.targets.items()}

    def least_margin(self) -> float:
        """How many times over the hardest target is met; 0 if a figure is missing."""
        ratios = self.ratios()
        return min(bound.margin(ratios[peer]) for peer, bound in self.targets.items())

    def as_json(self) -> dict[str, Any]:
        """The shape in which results are kept."""
        ratios = self.ratios()
        return {
            "ours": _rounded(self.ours),
            "peers": {peer: _rounded(figure) for peer, figure in self.peers.items()},
            "ratio": {peer: _rounded(ratio) for peer, ratio in ratios.items()},
            "target": {peer: str(bound) for peer, bound in self.targets.items()},
            "met": self.least_margin() >= 1,
            "runs": [run.as_json() for run in self.runs],
        }


def median_of(runs: Sequence[Run], contender: str) -> Figure:
    """The mean over the contender's runs of each one's median seconds; a word if one is wrong."""
    own = [run for run in runs if run.contender == contender]
    for run in own:
        if run.wrong is not None:
            return f"wrong: {run.wrong}"
    return statistics.fmean(run.median("seconds") for run in own)


def worst_subject(
    runs: Sequence[Run], ours: str, targets_of: Callable[[str], Mapping[str, Bound]]
) -> Measure:
    """The measure of that subject with a target of which ours does worst; all runs stand behind."""
    by_subject: dict[str, list[Run]] = {}
    for run in runs:
        by_subject.setdefault(run.subject["subject"], []).append(run)

    def made(subject: str) -> Measure:
        own, targets = by_subject[subject], targets_of(subject)
        peers = {peer: median_of(own, peer) for peer in targets}
        return Measure(ours=median_of(own, ours), peers=peers, targets=targets, runs=runs)

    return min(map(made, filter(targets_of, by_subject)), key=Measure.least_margin)


def sign_of(figure: str) -> str:
    """Return how a cost's figure has to compare with its target."""
    if figure in _EXACT:
        return "="
    return ">=" if figure in _AT_LEAST else "<="


def meets(figure: str, value: float, target: float) -> bool:
    """Return True if a cost meets its target."""
    sign = sign_of(figure)
    if sign == "=":
        return value == target
    return value >= target if sign == ">=" else value <= target


def meets_all(ours: Mapping[str, float], target: Mapping[str, float]) -> bool:
    """Return True if every cost with a target meets it."""
    return all(meets(figure, ours[figure], bound) for figure, bound in target.items())


def _rounded(figure: Figure | None) -> Figure | None:
    return round(figure, 3) if isinstance(figure, float) else figure
