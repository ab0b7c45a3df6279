"""docs/reading.md is the newest, and explains every question that it answers."""

import re
from typing import Any
from unittest.mock import Mock

from cdclake.config.resolve import load_plan
from cdclake.iceberg.as_of_query import AS_OF, as_of_query
from cdclake.iceberg.reader_facts import READER_FACTS
from cdclake.iceberg.saved_queries import SPARK, saved_queries
from scripts.reading_page import PAGE, PIPELINE, page
from tests.unit.markdown import PROJECT, blocks
from tests.unit.verify.lakes import make_table


def test_the_page_is_the_newest():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_each_question_has_a_text_for_either_engine():
    texts = re.findall(r"(Athena|Spark):\n\n```sql\n", page())
    assert texts == ["Athena", "Spark"] * len(saved_queries(make_table(), "lake_db"))


def test_spark_reads_the_catalog_of_the_jobs():
    for text in saved_queries(make_table(), "lake_db", SPARK).values():
        assert set(re.findall(r"(?:FROM|JOIN) (`\w+`\.`\w+`)", text)) == {"`lake`.`lake_db`"}


def test_the_program_of_a_commit_time_asks_spark(monkeypatch: Any) -> None:
    [program] = [each for each in blocks(PAGE, "python") if "as_of_query" in each]
    monkeypatch.chdir(PROJECT)
    spark = Mock()
    exec(program, {"spark": spark})
    plan = load_plan(PIPELINE)
    text = as_of_query(plan.table("orders", of="file"), plan, SPARK)[AS_OF]
    spark.sql.assert_called_once_with(text, args=["2026-11-21T14:00:00Z"])


def test_each_engine_has_its_rows_freshness_and_cost() -> None:
    table = page().partition("## Rows, freshness and cost by reader")[2].partition("\n## ")[0]
    assert all(facts.title in table for facts in READER_FACTS.values())
