"""Write docs/reading.md: common questions to a lake, as Athena and Spark SQL.

`python -m scripts.reading_page` writes the page, for the orders of pipelines/shop.yaml; a unit test
fails if the page is out of date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdclake.config.resolve import load_plan
from cdclake.iceberg.reader_facts import READER_FACTS
from cdclake.iceberg.saved_queries import ATHENA, INCOMPLETE, SPARK, saved_queries

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "reading.md"
COSTS = PROJECT / "benchmarks" / "results" / "views.json"
PIPELINE, TABLE = PROJECT / "pipelines" / "shop.yaml", "orders"

_BEGINNING = """\
# Reading the lake

Common queries, shown for the shop's `orders`. Athena has them as saved queries of the workgroup,
for every table. The Spark versions work in a session whose catalog of the lake's tables is called
`lake`, as in the jobs; with another catalog, replace the name before the first dot.

`<t>` holds the changes applied so far: it is seconds behind its changelog if the stream applies
them, and up to one schedule interval with `apply: scheduled`. `<t>_current` is as fresh as the
changelog: `cdclake sql` has it locally; `cdclake views` creates one for Athena and Trino, whose
queries also read the tail of the changelog ([deployment](deployment.md)). The job that applies the
changes keeps that tail short: it raises the [lower bound](concepts.md#lower-bound) in the view that
`cdclake views --target aws` stores for Athena. A printed view, as for Trino alone, has none: Trino
476 skips the files before the state's stamp by itself, Trino 406 reads the whole changelog. A `?`
is a value that Athena prompts for and Spark takes as an argument: `spark.sql(text, args=[...])`.

Incremental readers of `<t>_changes`, each a few lines: [Spark as a
stream](how-to/stream-a-changelog.md), and
[PyIceberg and DuckDB](how-to/stream-a-changelog.md#pyiceberg-and-duckdb) from where the last read
ended.

The views give points in time in UTC. Engines do not prune files by predicates on such a column,
nor on other columns than the key in `<t>_current`, partition columns included
([decision 76](decisions/0076-predicates-pushed-down-by-the-key-alone.md)): filter `<t>` or
`<t>_changes` where bytes are billed.
"""
_TAG = "at-2026-11-21T14:00:00Z"
_ABOUT = {
    "live rows": "`cdc_deleted` marks the rows of deleted keys, which are kept for a while.",
    "number of live rows": "From the state: the changes applied so far.",
    "deleted rows": (
        "The tombstones, with the time and the transaction of each delete. They are purged when no"
        " late event can concern them; with `deletes: soft` they keep their values and stay."
    ),
    "live rows as they were an hour ago": (
        "Any point in time of the last two hours; a table that is younger has no snapshot to read,"
        " and the query fails: use a shorter interval, or [a commit"
        " time](#live-rows-as-of-a-commit-time). For full hours of the last five days, each with a"
        " commit in it, the snapshots have tags. In Athena look up the tag's number, `SELECT"
        f' snapshot_id FROM "cdc_iceberg"."orders$refs" WHERE name = \'{_TAG}\'`, and'
        " read `FOR VERSION AS OF` that number. Trino 406 has no `$refs`: take the number of the"
        " newest of the [snapshots](#snapshots) that was committed by then. Spark takes the tag:"
        f" `VERSION AS OF '{_TAG}'`."
    ),
    "changes of the last hour": (
        "What arrived in the lake within the last hour, with the names of the operations."
    ),
    INCOMPLETE: (
        "In Athena and Trino, `<t>_current` shows NULL for a large value that an UPDATE of the"
        " row's key did not send, until that is applied; elsewhere it has the value. The query"
        " reads keys, positions and operations of the whole changelog. `cdclake status` of a local"
        " lake counts such rows as `incomplete` (with `--target aws` it is null: this query lists"
        " them), and so does `cdclake verify` with `--reader trino` or `--reader athena`."
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
        " in the source; the state, `<t>_current` and `<t>_history` remove them already. This"
        " `<t>_history` reads the changelog of every day, also for a query of one: read"
        " `<t>_changes` for a few days."
    ),
    "files": "The number of data and delete files, and how many of them are small.",
    "snapshots": (
        "The retained commits: `summary` has the counts of rows and files, and the jobs' stamp."
    ),
}

_AS_OF = """\
## Live rows as of a commit time

The source's rows at any commit time since the first snapshot was complete, within `history_days`;
an older time is refused, with the oldest possible one. The query reads the changelog alone, and all
of it: for a recent time read the state [as above](#live-rows-as-they-were-an-hour-ago), which lags
by what was not applied ([decision 71](decisions/0071-as-of-from-the-changelog-alone.md)). Athena
has it as a saved query of the workgroup, unless the
[shard is large](deployment.md#names-that-cannot-change); its `?` is a text such as
`'2026-11-21 14:00:00 UTC'`. `cdclake sql QUERY --as-of 2026-11-21T14:00:00Z` has the same rows in
DuckDB. This makes the text for Spark; without `SPARK` it is that for Athena and Trino:

```python
from pathlib import Path

from cdclake.config.resolve import load_plan
from cdclake.iceberg.as_of_query import AS_OF, as_of_query
from cdclake.iceberg.saved_queries import SPARK

plan = load_plan(Path("pipelines/shop.yaml"))
text = as_of_query(plan.table("orders", of="file"), plan, SPARK)[AS_OF]
spark.sql(text, args=["2026-11-21T14:00:00Z"]).show()
```

In Athena and Trino a large value that a changed key did not send is NULL. Tables with
`delivery: firehose` have `cdclake sql --as-of` alone. Days that were collapsed before
`history_days` was raised stay so: `cdclake sql --as-of` refuses them, these queries do not, and
lack the older rows of each key.
"""
_READERS = """\
## Engines

`lake: readers:` lists the engines that must be able to read the lake; `cdclake validate` refuses
settings that one of them cannot read, and notes the columns whose values one may cut. cdclake
writes position deletes (with format version 3 deletion vectors), and never equality deletes.

| engine | version | format versions | `<t>_current` | attached by | limits | source, date |
|---|---|---|---|---|---|---|
"""


_SEEN = """\
## Rows, freshness and cost by reader

| reader | rows | freshness | a query reads |
|---|---|---|---|
{rows}

Nothing of this has been measured on AWS: what Athena and Redshift read follows from the statements
and the layout of the files.
"""
_SOURCE_ROWS = "the source's rows"
_MEASURED = "[measured](#what-t_current-costs)"
_SEEN_ROWS = (
    (
        "every engine, `<t>`",
        "the live rows, with `NOT cdc_deleted`",
        "the last apply: seconds behind the changelog; with `apply: scheduled` or `delivery:"
        " firehose` up to one interval of `schedules: apply:`",
        "the selected columns of the data files that the predicates leave, and their delete files:"
        " for that Athena and Redshift Spectrum bill",
    ),
    (
        "Athena, `<t>_current`",
        f"{_SOURCE_ROWS}; until they are applied, large values that a changed key did not send are"
        " NULL",
        "the changelog: behind the source by the stream's trigger, or by Firehose's buffer",
        "as `<t>`; also its keys and positions again, the metadata of its snapshots, and the"
        " selected columns of the changelog's files that were ingested after the view's lower"
        " bound, which lags by one renewal (about ten minutes) plus four minutes, and by one more"
        " interval if changes are applied on a schedule",
    ),
    (
        "Trino, `<t>_current`",
        "as Athena",
        "as Athena",
        f"{_MEASURED} with Trino 476, which reads the changelog since the state's stamp; Trino 406"
        " reads all of it",
    ),
    (
        "Spark, `<t>_current`",
        _SOURCE_ROWS,
        "the changelog as it was when the view was made",
        _MEASURED,
    ),
    (
        "DuckDB, `<t>_current`",
        _SOURCE_ROWS,
        "the changelog as it was when `cdclake sql` began",
        _MEASURED,
    ),
    ("Snowflake, Redshift, PyIceberg, ClickHouse", "`<t>` alone", "as `<t>`", "as `<t>`"),
)


_TITLES = {name: facts.title for name, facts in READER_FACTS.items()}
_SPARK = """
## Spark

Spark has no stored `<t>_current`, since no catalog that reads the lake's tables on AWS stores
Iceberg's views: Iceberg 1.10's `GlueCatalog` does not implement `ViewCatalog` (CREATE VIEW fails,
as `tests/spark/test_views_agree.py` shows; apache/iceberg#12488 asks for it), and Glue's Iceberg
REST catalog does not support the view API (AWS Glue developer guide, limitations of its Iceberg
REST catalog API, 2026-11-26). In this version the catalogs of Hive, JDBC, Nessie and REST
implement it. Athena's views, which Glue does store, are Trino's SQL. A session makes a temporary
view instead, which shows the tables as they are at that moment:

```python
from pathlib import Path

from cdclake.config.resolve import load_plan
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.iceberg.lake_tables import LakeTables

spark.conf.set("spark.sql.session.timeZone", "UTC")  # the views compute times in it
plan = load_plan(Path("pipelines/shop.yaml"))
open_source(LakeTables(spark, plan.lake_database), plan.table("orders", of="file"))
spark.sql("SELECT count(*) FROM orders_current").show()
```

The plan has the types of the file. When the source has widened a column, write the new type into
the file first: with the old one, values beyond it are NULL in changes that the state has not
applied yet, and in `<t>_history`.
"""
_COSTS = """\
## What `<t>_current` costs

What a query of `<t>_current` reads and computes, as a multiple of the same query of the live rows
of `<t>`: {rows:,} rows, whose keys the predicates are on, and a tail of {small:,} or {large:,}
events that are not applied yet, or of none ([all figures](../benchmarks/results/views.json), commit
`{commit}`). All of a query is counted, with its look at metadata and at the tail. Before it, the
machine with {cores} cores had a load of {load}. Trino's bytes are those of data and delete files,
as Athena counts what it bills, without metadata; its CPU seconds are those of a small server whose
code Java has just compiled, so compare them with each other and not with Athena's time.

| reader | query | `<t>`: MB, CPU s | no tail: MB, CPU | small tail: MB, CPU | large tail: MB, CPU |
|---|---|---|---|---|---|
"""
_AFTER_COSTS = """
A count of `<t>` reads one column of booleans; with a tail, a count of `<t>_current` must compare
keys and positions. Trino and Athena read keys and positions also without a tail: their view cannot
ask first if there is one. Where `<t>` is fresh enough, count there. A tail with a changed key whose
large value was not sent costs more than this: its old key is looked up in the changelog. Most of
what Spark adds to short queries is fixed: it looks at the tail with a job, creates the views and
plans the joins. Without a tail its plan is that of the state.
"""


def page() -> str:
    """Return the expected text of the page."""
    engines = _READERS + "\n".join(_readers())
    return "\n".join(
        [_BEGINNING, *_sections(), _AS_OF, engines, "", _seen() + _SPARK, _costs(), ""]
    )


def _seen() -> str:
    return _SEEN.format(rows="\n".join(f"| {' | '.join(cells)} |" for cells in _SEEN_ROWS))


def _costs() -> str:
    results = json.loads(COSTS.read_text("utf-8"))
    measured = results["measures"]["views"]
    introduction = _COSTS.format(
        rows=measured["rows"],
        small=measured["tail_events"]["small"],
        large=measured["tail_events"]["large"],
        commit=measured["measured"]["commit"],
        load=measured["load_before"],
        cores=results["machine"]["cores"],
    )
    runs = {(run["reader"], run["shape"], run["tail"]): run for run in measured["runs"]}
    asked = dict.fromkeys((run["reader"], run["shape"]) for run in measured["runs"])
    rows = "\n".join(_cost_row(runs, *each) for each in sorted(asked, key=lambda each: each[0]))
    return introduction + rows + "\n" + _AFTER_COSTS.rstrip()


def _cost_row(runs: Mapping[tuple[str, str, str], Any], reader: str, shape: str) -> str:
    state = runs[reader, shape, "empty"]["state"]
    cells = [_TITLES[reader], shape, f"{state['bytes'] / 1e6:.1f}, {state['cpu_seconds']:.2f}"]
    for tail in ("empty", "small", "large"):
        view = runs[reader, shape, tail]["view"]
        times = (view[what] / state[what] for what in ("bytes", "cpu_seconds"))
        cells.append(", ".join(f"{each:,.1f}x" for each in times))
    return f"| {' | '.join(cells)} |"


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
        yield f"Spark:\n\n```sql\n{of_spark[what]}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page().rstrip("\n") + "\n")
