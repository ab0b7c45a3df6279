"""Write docs/reading.md: common questions to a lake, as Athena and Spark SQL.

`python -m scripts.reading_page` writes the page, for the orders of pipelines/shop.yaml; a unit test
fails if the page is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdclake.config.resolve import load_plan
from cdclake.iceberg.reader_facts import READER_FACTS
from cdclake.iceberg.saved_queries import ATHENA, INCOMPLETE, SPARK, saved_queries

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "reading.md"
PIPELINE, TABLE = PROJECT / "pipelines" / "shop.yaml", "orders"

_BEGINNING = """\
# Reading the lake

Common queries, shown for the shop's `orders`. Athena has them as saved queries of the workgroup,
for every table. The Spark versions work in a session whose catalog of the lake's tables is called
`lake`, as in the jobs; with another catalog, replace the name before the first dot.

`<t>` holds the changes applied so far: it is seconds behind its changelog if the stream applies
them, and up to one schedule interval with `apply: scheduled`. `<t>_current` is as fresh as the
changelog: `cdclake sql` has it locally; `cdclake views` creates one for Athena and Trino, whose
queries also read the tail of the changelog ([deployment](deployment.md)). A `?` is a value that
Athena prompts for and Spark takes as an argument: `spark.sql(text, args=[...])`.

The views give points in time in UTC. Engines do not prune files by predicates on such a column,
nor on other columns than the key in `<t>_current`: filter `<t>` or `<t>_changes` where bytes are
billed.
"""
_ABOUT = {
    "live rows": "`cdc_deleted` marks the rows of deleted keys, which are kept for a while.",
    "number of live rows": "From the state: the changes applied so far.",
    "deleted rows": (
        "The tombstones, with the time and the transaction of each delete. They are purged when no"
        " late event can concern them; with `deletes: soft` they keep their values and stay."
    ),
    "live rows as they were an hour ago": (
        "Any point in time of the last two hours; a table that is younger has no snapshot to read,"
        " and the query fails: use a shorter interval. For full hours of the last five days use"
        " their tags, `FOR VERSION AS OF 'at-2026-11-21T14:00:00Z'` (Spark: without `FOR`). For any"
        " commit time that the changelog keeps: `cdclake sql QUERY --as-of 2026-11-21T14:00:00Z`."
    ),
    "changes of the last hour": (
        "What arrived in the lake within the last hour, with the names of the operations."
    ),
    INCOMPLETE: (
        "In Athena and Trino, `<t>_current` shows NULL for a large value that an UPDATE of the"
        " row's key did not send, until that is applied; elsewhere it has the value. The query"
        " reads keys, positions and operations of the whole changelog. On the local lake `cdclake"
        " status` counts such rows as `incomplete`; `cdclake verify --reader athena` does on AWS."
    ),
    "quarantined events": (
        "Events of the table that could not be stored unchanged, by reason; `cdclake replay` tries"
        " them again once the cause is fixed."
    ),
    "audit trail of one key": (
        "Every event of the key in the source's commit order, with the changed values and the time."
        " Deletes are included, but not their values: PostgreSQL does not send them."
    ),
    "the changelog, each event once": (
        "Firehose writes events at least once, in any order. Duplicates share the event's position"
        " in the source; the state and the views remove them already."
    ),
    "files": "The number of data and delete files, and how many of them are small.",
    "snapshots": (
        "The retained commits: `summary` has the counts of rows and files, and the jobs' stamp."
    ),
}


_READERS = """\
## Engines

`lake: readers:` lists the engines that must be able to read the lake; `cdclake validate` refuses
settings that one of them cannot read. cdclake writes position deletes (with format version 3
deletion vectors), and never equality deletes.

| engine | version | format versions | `<t>_current` | attached by | limits | source, date |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the expected text of the page."""
    return "\n".join([_BEGINNING, *_sections(), _READERS + "\n".join(_readers()), ""])


def _readers() -> Iterator[str]:
    for facts in READER_FACTS.values():
        formats = ", ".join(map(str, facts.formats))
        cells = (facts.title, facts.version, formats, facts.views, facts.attached_by, facts.limits)
        yield f"| {' | '.join(cells)} | {facts.source}, {facts.read_on} |".replace("|  |", "| |")


def _sections() -> Iterator[str]:
    plan = load_plan(PIPELINE)
    [table] = [each for each in plan.tables if each.name == TABLE]
    of_athena, of_spark = (
        saved_queries(table, plan.lake_database, engine) for engine in (ATHENA, SPARK)
    )
    for what, text in of_athena.items():
        yield f"## {what[0].upper()}{what[1:]}\n\n{_ABOUT[what]}\n"
        yield f"Athena:\n\n```sql\n{text}\n```\n"
        if what in of_spark:
            yield f"Spark:\n\n```sql\n{of_spark[what]}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page().rstrip("\n") + "\n")
