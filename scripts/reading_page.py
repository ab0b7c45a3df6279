"""Write docs/reading.md: what people ask of a lake, as Athena and as Spark take it.

`python -m scripts.reading_page` writes the page, for the orders of pipelines/shop.yaml; a unit test
fails as long as it is not the newest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdclake.config.resolve import load_plan
from cdclake.iceberg.saved_queries import ATHENA, SPARK, saved_queries

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "reading.md"
PIPELINE, TABLE = PROJECT / "pipelines" / "shop.yaml", "orders"

_BEGINNING = """\
# Reading the lake

What people ask of a table, here of the shop's `orders`. Athena has these texts as saved queries
of its workgroup, for every table; a Spark session takes those beside them, if its catalog of the
lake's tables is called `lake`, as that of the jobs is. Elsewhere the name before the first dot is
another.

`<t>` is as far as changes are applied: seconds behind its log where the stream applies them, up
to a schedule where `apply: scheduled` says so. `<t>_current` is as fresh as the log: `cdclake
sql` has it locally; `cdclake views` makes one for Athena, as fresh as `<t>`
([deployment](deployment.md)). A `?` is a value that Athena asks for, and that Spark takes as an
argument: `spark.sql(text, args=[...])`.
"""
_ABOUT = {
    "live rows": "`cdc_deleted` marks the rows of deleted keys, which stay for a while.",
    "live rows as they were an hour ago": (
        "Any moment of the last two hours. Before that whole hours of five days, by their tags,"
        " `FOR VERSION AS OF 'at-2026-11-21T14:00:00Z'` (Spark: without `FOR`); for any other"
        " moment there is no query yet."
    ),
    "audit trail of one key": (
        "Every event of the key in the order of the source's commits, with what it changed and"
        " when. Deletes are there, their values are not: PostgreSQL does not send them."
    ),
    "the log, each event once": (
        "What Firehose delivers is written at least once, in any order. An"
        " event's place in the source tells its repeats; the state and the views do so themselves."
    ),
    "files": "How many data and delete files there are, and how many of them are small.",
    "snapshots": (
        "What each commit did, of those that are kept: `summary` counts rows and files, and has the"
        " jobs' stamp."
    ),
}


def page() -> str:
    """The page as it has to be."""
    return "\n".join([_BEGINNING, *_sections()])


def _sections() -> Iterator[str]:
    plan = load_plan(PIPELINE)
    [table] = [each for each in plan.tables if each.name == TABLE]
    of_athena, of_spark = (
        saved_queries(table, plan.lake_database, engine) for engine in (ATHENA, SPARK)
    )
    for what, text in of_athena.items():
        yield f"## {what[0].upper()}{what[1:]}\n\n{_ABOUT[what]}\n"
        yield f"Athena:\n\n```sql\n{text}\n```\n"
        yield f"Spark:\n\n```sql\n{of_spark[what]}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page().rstrip("\n") + "\n")
