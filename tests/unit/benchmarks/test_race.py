"""The race's own judgement: rates that are held, ages, and the statements of the others."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pytest

from benchmarks.charts import bar_chart
from benchmarks.many_tables import plan_of_many
from benchmarks.page import page
from benchmarks.race import flink_sql, spark_stream
from benchmarks.race import measure as race_measure
from benchmarks.race.held_rate import held_rate, judged
from benchmarks.race.measure import NEAR, measure_race, run_of
from benchmarks.race.page_section import race_bars, race_tables
from benchmarks.race.reading import differing_rows
from benchmarks.race.sightings import Sighting, added_files, ages
from benchmarks.race.zipf_traffic import ZipfTraffic
from benchmarks.results import Bound, Measure, worst_subject
from benchmarks.sizes import SIZES
from benchmarks.steps import Steps, Unfinished
from benchmarks.streaming import Trial
from benchmarks.traffic import DELETES, Keys
from cdclake.jobs.reader.catalog import TableSnapshot
from cdclake.local.components.kafka import Broker
from cdclake.local.process.credentials import Login
from cdclake.plan import Plan

PLAN: Plan = plan_of_many(5, 10)


def trials(capacity: float) -> Any:
    """A contender of this capacity: what exceeds it makes the age grow."""
    return lambda rate: Trial(rate, max(0.0, rate / capacity - 1), rate <= capacity)


@pytest.mark.parametrize(
    ("capacity", "first", "held", "greatest"),
    [
        (3000, 2000, 3000, 4500),  # 2000, 3000, and 4500 is not held
        (9000, 2000, 4500, 4500),  # no rate above the greatest is tried
        (9000, 1000, 4500, 4500),  # five rates, all held
        (1000, 2000, 1000, 2000),  # as much as arrived of 2000
        (10_000, 9000, 4500, 4500),
    ],
)
def test_the_ladder_ends_with_a_rate_that_was_held(
    capacity: float, first: float, held: float, greatest: float
) -> None:
    assert held_rate(trials(capacity), first, 4500) == pytest.approx((held, greatest))


def test_a_contender_that_holds_no_rate_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no rate was held"):
        held_rate(lambda rate: Trial(rate, 0.0, held=False), 1000, 4500)


@pytest.mark.parametrize(
    ("written", "early", "late", "is_held"),
    [
        (1000, 4000, 8900, True),
        (1000, 4000, 9100, False),
        (1000, 60_000, 74_000, True),  # a quarter, where batches take long
        (1000, 60_000, 76_000, False),
        (900, 4000, 4000, False),  # the source was the limit
    ],
)
def test_a_rate_is_held_if_the_age_hardly_grows(
    written: float, early: float, late: float, is_held: bool
) -> None:
    def found(start: float, _stop: float) -> list[tuple[float, int]]:
        return [(late if start > 70 else early, 100)]

    trial = judged(1000, written, found, 0.0, 120.0)
    assert trial.held is is_held
    assert trial.growth == pytest.approx((late - early) / 1000 / 45)


def test_the_age_of_a_row_is_from_its_writing_to_its_commit() -> None:
    found = [Sighting(11_000, 10_000_000, 70), Sighting(11_000, 5_000_000, 25)]
    assert ages(found, 9.0, 10.5) == [(1000.0, 70)]


def avro(name: str, fields: list[Any], records: list[Any]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": name, "fields": fields}, records)
    return out.getvalue()


def test_only_data_files_that_a_commit_added_are_its_sightings() -> None:
    def manifest(path: str, content: int, snapshot: int) -> dict[str, Any]:
        return {"manifest_path": path, "content": content, "added_snapshot_id": snapshot}

    listed = [manifest("data", 0, 7), manifest("deletes", 1, 7), manifest("older", 0, 6)]
    kinds = {"manifest_path": "string", "content": "int", "added_snapshot_id": "long"}
    file = {"type": "record", "name": "f", "fields": [{"name": "file_path", "type": "string"}]}
    entry = [{"name": "status", "type": "int"}, {"name": "data_file", "type": file}]
    entries = [{"status": n, "data_file": {"file_path": f"file-{n}"}} for n in (0, 1, 2)]
    content = {
        "list": avro("m", [{"name": n, "type": t} for n, t in kinds.items()], listed),
        "data": avro("e", entry, entries),
    }
    commit = TableSnapshot(
        id=7, parent=6, committed_ms=1, sequence=2, manifests="list", summary={}, columns=()
    )
    assert list(added_files(content.__getitem__, commit)) == ["file-1"]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ("(1, 5, 0.97, true), (2, 6, 1.94, false)", 0),
        ("(1, 5, 0.97, true)", 1),  # missing
        ("(1, 5, 0.97, true), (2, 6, 1.95, false), (3, 6, 1.94, false)", 2),  # other, not expected
        ("(1, 5, 0.97, true), (2, 6, 1.94, false), (2, 6, 1.94, false)", 1),  # twice
    ],
)
def test_a_wrong_row_is_counted_once(tmp_path: Path, rows: str, wrong: int) -> None:
    kept = {"id", "quantity", "price", "paid", "updated_at"}
    table = PLAN.tables[0]
    table = replace(table, columns=tuple(c for c in table.columns if c.name in kept))
    source, folder = tmp_path / "rows.csv", tmp_path / "rows"
    source.write_text("1,5,0.97,true,1000001\n2,6,1.94,false,1000001\n")
    folder.mkdir()
    with duckdb.connect() as duck:
        duck.execute(
            "COPY (SELECT id::BIGINT AS id, quantity, price::DECIMAL(12, 2) AS price, paid, "
            "make_timestamptz(1000001) AS updated_at "
            f"FROM (VALUES {rows}) AS r(id, quantity, price, paid)) TO '{folder}/a.parquet'"
        )
    assert differing_rows(table, source, folder) == wrong


def test_zipf_updates_favour_some_living_rows() -> None:
    traffic = ZipfTraffic("", (), 1000)
    keys = Keys(first=11, following=1001)
    drawn = [key for _ in range(200) for key in traffic._draw(keys, 25)]
    assert min(drawn) >= keys.first + DELETES
    assert max(drawn) < keys.following
    hottest = max(drawn.count(key) for key in set(drawn))
    assert hottest > 100  # of 200 transactions
    late = traffic._draw(Keys(first=2001, following=3001), 25)
    assert (len(set(late)), min(late) >= 2006, max(late) < 3001) == (25, True, True)


def test_flinks_script_is_one_job_of_upserts() -> None:
    broker = Broker("127.0.0.1:9", Login("user", "word"))
    text = flink_sql.script(PLAN, broker, "http://s3", "s3://bucket/warehouse")
    assert text.count("INSERT INTO `lake`.`bench`.`orders_0") == 5
    assert text.index("BEGIN STATEMENT SET") < text.index("INSERT INTO")
    assert text.endswith(";\nEND;\n")
    assert text.count("'format-version' = '2', 'write.upsert.enabled' = 'true'") == 5
    assert "`id` STRING, `customer_id` BIGINT" in text  # a UUID
    assert "`price` DECIMAL(12, 2)" in text
    assert text.count("PRIMARY KEY (`id`) NOT ENFORCED") == 10


def test_the_merge_keeps_a_text_that_was_not_sent() -> None:
    text = spark_stream.merge(PLAN.tables[4], "bench", "changes")
    assert "t.`details` = IF(s.`keep_details`, t.`details`, s.`details`)" in text
    assert "t.`status` = s.`status`" in text
    assert "WHEN MATCHED AND s.cdc_is_delete THEN DELETE" in text


def leg(
    seconds: float, wrong: dict[str, int] | None = None, held: dict[str, Any] | None = None
) -> dict[str, Any]:
    stretch = {
        "changes_per_second": 1000, "changes": 100_000, "cpu_seconds": seconds,
        "changes_per_cpu_second": 5000, "p50_seconds": 6.0, "p95_seconds": 11.0,
        "max_seconds": 12.5,
    }  # fmt: skip
    half = {**stretch, "changes_per_second": 2250, "changes": 200_000}
    figures = {
        "seconds": seconds, "cpu_seconds": seconds, "requests": {"s3": 1200, "glue": 80},
        **(held or {"held_rate": 4500, "greatest_tried": 4500}), "common": stretch, "half": half,
        "count_seconds": 3.0, "read_seconds": 9.0, "duckdb": "yes",
    }  # fmt: skip
    return {"figures": figures, "wrong_rows": wrong or {}}


def test_the_page_has_the_race_near_and_far() -> None:
    runs = [
        run_of("ours", "near", [leg(10.0), leg(12.0), leg(11.0)]),
        run_of("flink_upsert", "near", [leg(66.0)]),
        run_of("spark_merge", "near", [leg(80.0, {"orders_01": 2})]),
    ]
    bounds = {"flink_upsert": Bound(">=", 5)}
    measure = worst_subject(runs, "ours", lambda _: bounds).as_json()
    kept = {"measured": {"commit": "1234567", "at": "2026-01-01 00:00 UTC"}, **measure}
    text = page({"machine": {}, "versions": {}, "measures": {"N10": kept}})
    assert "| flink_upsert | 11.00 | 66.00 | 6.00 | >= 5x | yes |" in text
    ours = "| ours | near | 4,500* | 5,000 | 5,000 at 2,250/s | 6.0 | 11.0 | 12.5 | 1,200 | 80 |"
    assert ours in text
    assert "wrong: 2 rows differ from the source" in text
    assert "One round, without a spread." in text, "flink_upsert has one"
    bars = race_bars(kept)
    assert (bars["ours near, 1,000/s"], bars["ours near, 2,250/s"]) == (11.0, 5.5)
    assert bars["spark_merge near"] == "wrong: 2 rows differ from the source"
    assert bar_chart("N10", bars, unit="s", ours="ours").count('class="ours"') == 2


def test_commands_without_time_add_up_to_three_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def take_leg(_arena: object, _race: object, contender: str, _distance: str) -> dict[str, Any]:
        taken.append(contender)
        return leg(10.0 + len(taken))

    monkeypatch.setattr(race_measure, "take_leg", take_leg)
    found: list[Measure] = []
    while not found:
        try:
            steps = Steps(tmp_path / "N10.json", "a", until=0.0)
            found.append(measure_race(NEAR, SIZES["full"], tmp_path, steps))
        except Unfinished:
            assert len(taken) < 9
    assert [taken.count(name) for name in ("ours", "spark_merge", "flink_upsert")] == [3, 3, 3]
    words, _, _ = next(race_tables(found[0].as_json()))
    assert words.startswith("Medians of 3 rounds.")


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        ({"held_rate": 3375, "greatest_tried": 4500}, "3,375"),
        ({"held_rate": 3375, "greatest_tried": 3375}, "3,375*"),
        # Results of the ladder that ended after four rates, from 1000 on.
        ({"held_rate": 3375, "is_most": False}, "3,375*"),
        ({"held_rate": 2250, "is_most": False}, "2,250"),
        ({"held_rate": 4500, "is_most": True}, "4,500*"),
    ],
)
def test_the_page_marks_a_rate_above_which_none_was_tried(held: dict[str, Any], shown: str) -> None:
    run = run_of("spark_merge", "near", [leg(80.0, held=held)])
    [(_, _, [row]), _] = race_tables({"runs": [run.as_json()]})
    assert row[2] == shown
