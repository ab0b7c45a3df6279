"""The catalogue's cases by the engine on Spark and Iceberg: state, log, quarantine, `_current`.

Those that do not touch each other's rows run in one table, all their batches of one number at once,
by row deltas. Slow: once more in one batch, the last event first (DuckDB folds them so by default);
all of it in a partitioned state and by the MERGE of format version 3; those read `_current` from
the changelog alone, too. Of the cases that need a table alone, CI has one of each kind.
"""

import base64
import uuid

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.iceberg.delta_handle import DeltaHandle
from tests.model.scenarios import Case, Live, cases
from tests.spark.packed import Packed, Seen, can_be_cut_anew, in_one_batch, written

pytestmark = pytest.mark.spark

CUTS = {"as-written": written, "in-one-batch": in_one_batch}
QUICKEST_ALONE = ("D8-a-truncate-and-a-creation", "S5-two-epochs-in-a-tables-first-batch")
Chosen = tuple[Case, str, str]


def is_slow(case: Case, cut: str, way: str) -> bool:
    is_slow_alone = case.alone and case.id not in QUICKEST_ALONE
    return (cut, way) != ("as-written", "delta") or is_slow_alone


CASES = [
    pytest.param(
        case, cut, way, id=f"{case.id}-{cut}-{way}",
        marks=pytest.mark.slow if is_slow(case, cut, way) else (),
    )
    for way in ("delta", "parts", "merge")
    for case in cases()
    for cut in (CUTS if can_be_cut_anew(case) else ["as-written"])
]  # fmt: skip


class Outcomes:
    """What became of the cases that this run has chosen; a table runs when first asked for."""

    def __init__(self, spark: SparkSession, chosen: list[Chosen]) -> None:
        self._spark = spark
        self._chosen = chosen
        self._seen: dict[tuple[str, str, str], Seen] = {}

    def of(self, case: Case, cut: str, way: str) -> Seen:
        """What became of this one."""
        if (case.id, cut, way) not in self._seen:
            table = _table((case, cut, way))
            self._run([other for other in self._chosen if _table(other) == table], way)
        return self._seen[(case.id, cut, way)]

    def _run(self, members: list[Chosen], way: str) -> None:
        packed = Packed(
            self._spark,
            members[0][0].shape,
            f"t_{uuid.uuid4().hex[:8]}",
            is_partitioned=way == "parts",
        )
        instances = [CUTS[cut](case, number) for number, (case, cut, _) in enumerate(members)]
        with pytest.MonkeyPatch.context() as patch:
            if way == "merge":
                patch.setattr(DeltaHandle, "takes_deltas", False)
            # DuckDB reads all of these cases from the changelog alone in tests/unit/catalogue.
            seen = packed.run(instances, reads_log=way != "delta")
        for number, (case, cut, _) in enumerate(members):
            self._seen[(case.id, cut, way)] = seen[number]


def _table(chosen: Chosen) -> tuple[str, str]:
    case, _, way = chosen
    return (case.id if case.alone else case.shape, way)


@pytest.fixture(scope="module")
def outcomes(spark, request) -> Outcomes:
    chosen = [
        tuple(item.callspec.params[name] for name in ("case", "cut", "way"))
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    ]
    return Outcomes(spark, chosen)


@pytest.mark.parametrize(("case", "cut", "way"), CASES)
def test_case(outcomes: Outcomes, case: Case, cut: str, way: str) -> None:
    seen = outcomes.of(case, cut, way)
    if cut == "as-written":
        assert {step: seen.then[step] for step in case.then} == case.then
    assert _as_sent(seen.state) == case.state
    assert seen.missing == case.missing
    assert seen.log.split() == case.log.split()
    assert seen.refused == list(case.refused)
    assert _as_sent(seen.current) == case.state
    if seen.current_of_log is not None:
        assert _as_sent(seen.current_of_log) == case.state
    assert _as_sent(seen.rebuilt) == case.state


def _as_sent(rows: Live) -> Live:
    return {
        key: tuple(
            base64.b64encode(value).decode() if isinstance(value, bytearray) else value
            for value in row
        )
        for key, row in rows.items()
    }
