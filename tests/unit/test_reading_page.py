"""docs/reading.md is the newest, and explains every question that it answers."""

import re

from cdclake.iceberg.saved_queries import SPARK, saved_queries
from scripts.reading_page import PAGE, page
from tests.unit.verify.lakes import make_table


def test_the_page_is_the_newest():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_each_question_has_a_text_for_either_engine():
    texts = re.findall(r"(Athena|Spark):\n\n```sql\n", page())
    assert texts == ["Athena", "Spark"] * len(saved_queries(make_table(), "lake_db"))


def test_spark_reads_the_catalog_of_the_jobs():
    for text in saved_queries(make_table(), "lake_db", SPARK).values():
        assert set(re.findall(r"(?:FROM|JOIN) (`\w+`\.`\w+`)", text)) == {"`lake`.`lake_db`"}
