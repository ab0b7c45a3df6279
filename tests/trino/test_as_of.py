"""The saved query of the rows as of a commit time, by a real Trino over values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trino.exceptions import TrinoUserError

from cdclake import naming
from cdclake.iceberg.as_of_query import AS_OF, as_of_query
from cdclake.iceberg.as_of_view import as_of_view
from cdclake.iceberg.dialect import TRINO
from cdclake.iceberg.views import AppliedThrough
from cdclake.local.trino.server import Trino
from tests.model.lake_rows import log_row
from tests.model.scenarios import Case, Live, Place, cases
from tests.model.shapes import plan_with, shaped_table
from tests.trino.case_groups import SharedLake, unsent_values
from tests.trino.values import lake_values, over
from tests.unit.catalogue.test_as_of import commit_times, events_of, expected
from tests.unit.catalogue.test_current import as_sent
from tests.unit.verify.lakes import event, make_plan, make_table


def groups() -> Iterator[Any]:
    """The cases that share a table, or one by itself."""
    found: dict[str, list[Case]] = {}
    for case in cases():
        found.setdefault(case.id if case.alone else case.shape, []).append(case)
    for name, members in found.items():
        yield pytest.param(members, id=name)


@pytest.mark.slow  # by default DuckDB and Spark run them
@pytest.mark.parametrize("members", list(groups()))
def test_case(engine: Trino, members: list[Case]) -> None:
    """At each of the commit times, and just before the first, the rows are those of then."""
    table = shaped_table(members[0].shape)
    histories = []
    lake = SharedLake(table, AppliedThrough())
    for number, case in enumerate(members):
        events = events_of(case, Place(number=number))
        times = commit_times(events)
        histories.append((case, events, times))
        rows = [log_row(event, table, 1) for event in events]
        lake.log += [{**row, naming.COMMITTED_AT: at} for row, at in zip(rows, times, strict=True)]
    lake.may_lack = unsent_values(table, lake.log)
    relations = lake_values(table, plan_with(table), lake.log)
    for moment in sorted({0, *(at for *_, times in histories for at in times)}):
        lake.expected = {}
        for case, events, times in histories:
            known = [event for event, at in zip(events, times, strict=True) if at <= moment]
            lake.expected |= expected(known, case)
        at = TRINO.instant(moment)
        view = as_of_view(table, changes='"cdc"."t_changes"', moment=at, dialect=TRINO)
        found = rows_by_key(engine.rows(over(view, relations, "cdc")), len(table.key))
        assert lake.completed(found) == lake.expected, moment


def rows_by_key(rows: list[tuple[Any, ...]], keys: int) -> Live:
    live = {row[:keys]: tuple(map(as_sent, row[keys:])) for row in rows}
    assert len(live) == len(rows)
    return live


NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def asked(engine: Trino, moment: str, *, since: datetime, history_days: int = 90) -> list[Any]:
    """The rows of a table whose snapshot ended at `since`; a day later one of two was deleted."""
    table = make_table()
    plan = make_plan(table, history_days=history_days)
    log = [
        {**event(op, prev, lsn, phase=phase, id=key), naming.COMMITTED_AT: micros(at)}
        for op, prev, lsn, phase, key, at in (
            ("r", 0, 1, 0, 1, since), ("r", 0, 1, 0, 2, since), ("d", 5, 6, 1, 2, since + DAY),
        )
    ]  # fmt: skip
    query = over(as_of_query(table, plan)[AS_OF], lake_values(table, plan, log), "lake_db")
    return sorted(row[0] for row in engine.rows(query, moment))


@pytest.mark.slow
@pytest.mark.parametrize(("later", "keys"), [(0.0, [1, 2]), (0.99, [1, 2]), (1.0, [1])])
def test_rows_are_those_of_the_commit_time(engine: Trino, later: float, keys: list[int]) -> None:
    since = NOW - 10 * DAY
    assert asked(engine, f"{since + later * DAY:%Y-%m-%d %H:%M:%S.%f} UTC", since=since) == keys


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days_ago", "history_days", "oldest"),
    [
        pytest.param(10.1, 90, NOW - 10 * DAY, id="before the snapshot was complete"),
        pytest.param(9.5, 9, datetime.now(UTC) - 9 * DAY, id="beyond history_days"),
    ],
)
def test_an_older_time_is_refused(
    engine: Trino, days_ago: float, history_days: int, oldest: datetime
) -> None:
    moment = f"{NOW - days_ago * DAY:%Y-%m-%d %H:%M:%S} UTC"
    with pytest.raises(TrinoUserError, match=f"ask for a commit time since {oldest:%Y-%m-%d %H:}"):
        asked(engine, moment, since=NOW - 10 * DAY, history_days=history_days)


def test_firehoses_changelogs_have_no_such_query() -> None:
    table = make_table(delivery="firehose")
    assert as_of_query(table, make_plan(table)) == {}
