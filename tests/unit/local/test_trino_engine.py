"""Trino as the engine of `verify` on a lake, with a stub in place of the server."""

from __future__ import annotations

from typing import Any

import pytest
from trino.exceptions import TrinoUserError

from cdclake.cli import verify as command
from cdclake.cli.target import Target
from cdclake.errors import ComponentFailed, InputError
from cdclake.iceberg.athena_views import current_select, tail_bound
from cdclake.iceberg.dialect import TRINO
from cdclake.jobs.verify.view_rows import compare_engines
from cdclake.local.trino import trino_engine
from cdclake.local.trino.trino_engine import TrinoEngine, verify_in_trino
from cdclake.verify.columns import compared_columns
from cdclake.verify.statements import Comparable
from tests.unit.verify.lakes import event, make_plan, make_table
from tests.unit.verify.small_reader import SmallReader

TABLE = make_table()
PLAN = make_plan(TABLE)
SINCE = 1_700_000_000_000_000
LOG = [event("c", 10 * n, 10 * n + 1, id=n, v=n, big="A") for n in range(1, 5)]


class Server:
    """A server that answers each statement by the first text in it that it knows."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = {"to_unixtime": [(SINCE,)], **answers}
        self.asked: list[str] = []

    def rows(self, statement: str) -> Any:
        self.asked.append(statement)
        answer = next(rows for text, rows in self.answers.items() if text in statement)
        if isinstance(answer, Exception):
            raise answer
        return answer


def engine(**answers: Any) -> TrinoEngine:
    return TrinoEngine(Server(answers), PLAN)  # type: ignore[arg-type]


def side(of: TrinoEngine) -> Comparable:
    return Comparable("trino", of.relation(TABLE), compared_columns(TABLE, PLAN, {}, TRINO))


def test_rows_are_asked_of_the_views_text_with_its_bound() -> None:
    asked = engine(h=[(7, "1", "1", None, "A")])
    with asked.open([TABLE]) as lake:
        [row] = lake.rows_of(side(asked), [7])
    assert (row.hash, row.key, row.texts) == (7, "1", ("1", None, "A"))
    bound, rows = asked.server.asked  # type: ignore[attr-defined]
    assert bound == tail_bound(TABLE, PLAN)
    assert f'FROM ({current_select(TABLE, PLAN, SINCE)}) AS "t_current"' in rows
    assert str(SINCE) in rows and "CREATE" not in rows


def test_rows_that_lack_values_are_listed() -> None:
    asked = engine(waits_for=[(7, "1", "1", "big")])
    with asked.open([TABLE]) as lake:
        [row] = lake.incomplete(side(asked), TABLE)
    assert (row.place, row.texts[-1]) == ((7, "1"), "big")
    assert '"lake_db"."t_changes"' in asked.server.asked[-1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_row_that_trino_does_not_show_is_missing(lost: int) -> None:
    reader: Any = SmallReader(PLAN, LOG)
    with reader.open([TABLE]) as session:
        columns = compared_columns(TABLE, PLAN, {})
        texts = Comparable("duckdb", '"lake_db"."t_current"', columns).rows_of_buckets(1, [0])
        rows = session.execute(texts).fetchall()[lost:]
    answers = {"AS bucket": [(0, len(rows), 1)], "waits_for": [], "SELECT h, k": rows}
    asked = engine(**answers)
    [found] = compare_engines(reader, [TABLE], asked).tables
    assert (found.missing, found.different, found.ok) == (lost, 0, not lost)
    assert (found.source_rows, found.lake_rows) == (4, 4 - lost)


def test_a_statement_that_trino_refuses_is_an_error_with_a_remedy() -> None:
    refusal = TrinoUserError({"message": "Access Denied"}, "query")
    with pytest.raises(ComponentFailed, match="Access Denied") as caught:
        engine(to_unixtime=refusal).relation(TABLE)
    assert "--reader duckdb" in caught.value.remedy and caught.value.component == "trino"


def test_format_version_3_is_refused_before_a_server_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trino_engine, "trino_of", None)
    lake: Any = type("Lake", (), {"plan": make_plan(TABLE, format_version=3)})
    with pytest.raises(InputError, match="Trino cannot read format version 3"):
        verify_in_trino(lake, 1.0, None, None, deep=False)


def test_trino_is_refused_for_a_deployment() -> None:
    with pytest.raises(InputError, match="reads the local lake only") as caught:
        command.verify(reader=command.ReaderEngine.TRINO, target=Target.AWS)
    assert "--reader athena" in caught.value.remedy
