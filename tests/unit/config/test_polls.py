"""Polled tables in the pipeline file: their plan, their queries, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdclake.config.deployment import load_deployment
from cdclake.config.poll_sql import relations_of
from cdclake.config.problems import Problem, Refused
from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import read_document
from cdclake.plan import Plan
from cdclake.polling import Polling
from cdclake.postgres.poll_queries import changed_since, relation

FILE = """\
version: 1
name: places
source: {{database: places}}
tables:
  public.orders: {{key: [id], columns: {{id: bigint}}}}
  public.city:
    key: [city_id]
    columns:
      city_id: integer
      City: text
      secret: {{type: text, mask: hash}}
      changed: {type}
      left_out: {{type: timestamptz, exclude: true}}
    {more}
    capture: {{poll: {{{poll}}}}}
"""
LOGGED = "columns: {id: bigint}, capture: log}"


def written(folder: Path, *, poll: str = "by: changed", type: str = "timestamptz", more: str = ""):
    """The file with these parts."""
    file = folder / "places.yaml"
    file.write_text(FILE.format(poll=poll, type=type, more=more))
    return file


def problems(folder: Path, **parts: str) -> list[Problem]:
    """What is wrong with the file."""
    return find_problems(read_document(written(folder, **parts)))


def test_polled_tables_are_apart_from_those_of_the_log(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, poll="by: changed, every: rate(1 hour), deletes: none"))
    assert [table.name for table in plan.tables] == ["orders"]
    [city] = plan.polled
    assert city.delivery == "poll"
    assert city.polling == Polling(by="changed", every="rate(1 hour)", deletes="none")
    assert city.may_stay_unsent == ()
    assert plan.is_salted
    assert not any("city" in topic for topic in plan.topics)
    assert plan.table("public.city") == city
    assert Plan.from_json(plan.to_json()) == plan


def test_capture_log_is_the_default(tmp_path: Path) -> None:
    file = written(tmp_path)
    default = load_plan(file)
    file.write_text(file.read_text().replace("columns: {id: bigint}}", LOGGED))
    assert load_plan(file) == default


def test_a_table_from_the_log_has_its_settings_and_a_topic(tmp_path: Path) -> None:
    file = written(tmp_path)
    logged = LOGGED.replace("log}", "log, state_freshness: 10, replica_identity: full}")
    file.write_text(
        file.read_text().replace("columns: {id: bigint}}", logged)
        + "connectors: {copy: {class: io.example.Sink, plugin: p.zip, tables: [public.orders]}}\n"
    )
    assert find_problems(read_document(file), deployed=True) == []


def test_a_deployment_needs_a_table_whose_capture_is_not_a_poll(tmp_path: Path) -> None:
    file = written(tmp_path)
    lines = [line for line in file.read_text().splitlines(True) if "public.orders" not in line]
    file.write_text("".join(lines).replace("{poll: {by: changed}}", "log"))
    assert find_problems(read_document(file), deployed=True) == []


@pytest.mark.parametrize(
    ("capture", "message", "remedy"),
    [
        ("logs", "invalid capture 'logs'", "`log`, or `{poll: {by: COLUMN}}`"),
        ("poll", "invalid capture 'poll'", "`log`, or `{poll: {by: COLUMN}}`"),
        ("{pol: {by: changed}}", "unknown key 'pol'", "did you mean 'poll'?"),
        ("{}", "`poll` is missing", "add `poll:`"),
    ],
)
def test_an_unknown_way_of_capture_is_refused(
    tmp_path: Path, capture: str, message: str, remedy: str
) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace("{poll: {by: changed}}", capture))
    found = find_problems(read_document(file))
    assert (15, True) in [(each.line, message in each.message) for each in found], found
    assert any(remedy in each.remedy for each in found)


@pytest.mark.parametrize(
    ("poll", "local", "deployed"),
    [
        ("by: changed", "rate(5 minutes)", "rate(15 minutes)"),
        ("by: changed, every: rate(1 hour)", "rate(1 hour)", "rate(1 hour)"),
    ],
)
def test_polls_are_less_frequent_in_a_deployment_by_default(
    tmp_path: Path, poll: str, local: str, deployed: str
) -> None:
    file = written(tmp_path, poll=poll)
    file.write_text(file.read_text().replace("public.city:", "'\"public\".city':"))
    assert [*load_plan(file).polls] == [local]
    assert [*load_deployment(file).plan.polls] == [deployed]


def test_tables_of_one_schedule_are_polled_together(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(
        file.read_text() + "  public.town:\n    key: [id]\n    columns: {id: bigint, at: timestamp}"
        "\n    capture: {poll: {by: at, every: rate(5 minutes)}}\n"
    )
    polls = load_plan(file).polls
    assert {every: [t.name for t in tables] for every, tables in polls.items()} == {
        "rate(5 minutes)": ["city", "town"]
    }


@pytest.mark.parametrize(
    ("parts", "line", "message", "remedy"),
    [
        ({"poll": "by: changd"}, 15, "has no column 'changd', or excludes it", "did you mean"),
        ({"poll": "by: left_out"}, 15, "has no column 'left_out'", "name one of: city_id, City"),
        ({"poll": "by: City"}, 15, "'City' of 'public.city' is not an unmasked", "timestamptz"),
        ({"poll": "by: secret"}, 15, "is not an unmasked", "without `mask:`"),
        ({"type": "date"}, 15, "is not an unmasked", "timestamptz or timestamp"),
        ({"type": '"timestamptz[]"'}, 15, "is not an unmasked", "timestamptz or timestamp"),
        ({"more": "delivery: firehose"}, 14, "`delivery` is for replicated tables", "remove"),
        ({"more": "state_freshness: 10"}, 14, "`state_freshness` is for replicated", "remove"),
        (
            {"poll": "by: changed, deletes: none, sweep_every: rate(1 day)"},
            15, "`deletes: none` never sweeps", "remove `sweep_every`",
        ),
        ({"poll": "by: changed, overlap_minutes: 0"}, 15, "overlap_minutes", "1"),
        (
            {"poll": "by: changed, query: SELECT * FROM city"},
            15, "reads 'city' without its schema", "public.city",
        ),
    ],
)  # fmt: skip
def test_polls_that_cannot_work_are_refused(
    tmp_path: Path, parts: dict[str, str], line: int, message: str, remedy: str
) -> None:
    found = problems(tmp_path, **parts)
    assert len(found) == 1, found
    assert found[0].line == line
    assert message in found[0].message
    assert remedy in found[0].remedy


@pytest.mark.parametrize(
    ("column", "reason"),
    [("tags: hstore", "cannot read hstore"), ("n: {type: text, mask: truncate(3)}", "truncate")],
)
def test_values_that_a_query_spells_otherwise_are_refused(
    tmp_path: Path, column: str, reason: str
) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text().replace("City: text", column))
    [problem] = find_problems(read_document(file))
    assert reason in problem.message


def test_only_a_local_lake_can_do_without_tables_of_the_log(tmp_path: Path) -> None:
    file = written(tmp_path)
    lines = [line for line in file.read_text().splitlines(True) if "public.orders" not in line]
    file.write_text("".join(lines))
    assert load_plan(file).tables == ()
    [problem] = find_problems(read_document(file), deployed=True)
    assert "every table is polled" in problem.message


def test_the_relations_of_a_query_are_spelled_as_postgresql_reads_them() -> None:
    query = (
        'WITH recent AS (SELECT * FROM Public.City) SELECT * FROM recent JOIN "Odd"."Name" AS n'
        " USING (id) WHERE id IN (SELECT id FROM other.town) -- FROM nothing.here"
    )
    assert set(relations_of(query)) == {
        ("public", "city"), ("Odd", "Name"), ("other", "town"),
    }  # fmt: skip


@pytest.mark.parametrize("query", ["DELETE FROM a.b", "SELECT 1; SELECT 2", "SELEC x", ""])
def test_only_one_select_can_be_polled(query: str) -> None:
    with pytest.raises(Refused):
        relations_of(query)


def test_a_query_replaces_the_table(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, poll="by: changed, query: SELECT * FROM a.b AS x;"))
    [city] = plan.polled
    assert relation(city) == "(SELECT * FROM a.b AS x\n) AS polled"
    assert city.polling is not None
    assert city.polling.reads == (("a", "b"),)


def test_a_time_without_zone_is_compared_in_the_servers_zone(tmp_path: Path) -> None:
    [city] = load_plan(written(tmp_path, type="timestamp")).polled
    query = changed_since(city, 1_700_000_000_000_000, 1_700_000_300_000_000, "a'b")
    assert "AT TIME ZONE 'a''b'" in query
    [aware] = load_plan(written(tmp_path)).polled
    where = changed_since(aware, 0, 0, "UTC").rpartition(" WHERE ")[2]
    assert where == '"changed" >= to_timestamp(0 / 1000000.0) OR "changed" IS NULL'


def test_schedules_have_names_apart() -> None:
    every = ("cron(0 4 * * ? *)", "cron(0 4 ? * * *)", "cron(0 4 1 * ? *)", "cron(0 4 * 1 ? *)")
    names = {Polling(by="at", every=each).schedule_name for each in (*every, "rate(1 day)")}
    assert len(names) == 5
    assert all(re.fullmatch(r"rate-1-day|cron-[0-9a-f]{8}", name) for name in names)
