"""Write docs/reading.md: common questions to a lake, as Athena and Spark SQL.

`python -m scripts.reading_page` writes the page, for the orders of pipelines/shop.yaml; a unit test
fails if the page is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.iceberg.reader_facts import NOT_STATED, READER_FACTS, Fact, ReaderFacts
from cdclake.iceberg.saved_queries import ATHENA, INCOMPLETE, SPARK, saved_queries
from scripts.reading_costs import costs_section

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
queries also read the tail of the changelog ([deployment](deployment.md)). The job that applies the
changes keeps that tail short: it raises the [lower bound](concepts.md#lower-bound) in the view that
`cdclake views --target aws` stores for Athena. A printed view, as for Trino alone, has none: Trino
476 skips the files before the state's stamp by itself, Trino 406 reads the whole changelog. A `?`
is a value that Athena prompts for and Spark takes as an argument: `spark.sql(text, args=[...])`.

Spark, PyIceberg and DuckDB can read [what is new](#new-events-since-the-last-read) in
`<t>_changes`.

The views return timestamps in UTC. Engines do not prune files by predicates on these columns or, in
`<t>_current`, by predicates on any column outside the key, partition columns included
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
        "Any point in time of the last two hours. A table that is younger than the interval has no"
        " snapshot to read, and the query fails: use a shorter interval, or [a commit"
        " time](#live-rows-as-of-a-commit-time). For the last five days, the snapshot at the end of"
        " each hour with a commit has a tag. In Athena look up the tag's snapshot id, `SELECT"
        f' snapshot_id FROM "cdc_iceberg"."orders$refs" WHERE name = \'{_TAG}\'`, and'
        " read `FOR VERSION AS OF` that id. Trino 406 has no `$refs`: take the id of the newest of"
        " the [snapshots](#snapshots) that were committed by then. Spark takes the tag:"
        f" `VERSION AS OF '{_TAG}'`."
    ),
    "changes of the last hour": (
        "What arrived in the lake within the last hour, with the names of the operations. A"
        " `truncate` with `cdc_partition` -1 is a [sweep](concepts.md#sweep), not a statement of"
        " the source."
    ),
    INCOMPLETE: (
        "In Athena and Trino, `<t>_current` shows NULL for a large value that PostgreSQL did not"
        " send with an UPDATE of the row's key, until that is applied; elsewhere it has the value."
        " The query reads keys, positions and operations of the whole changelog. `cdclake status`"
        " of a local lake counts such rows as `incomplete` (with `--target aws` it is null: this"
        " query lists them), and so does `cdclake verify` with `--reader trino` or `--reader"
        " athena`."
    ),
    "quarantined events": (
        "Events of the table that could not be stored unchanged, by reason; `cdclake replay` tries"
        " them again once the cause is fixed."
    ),
    "audit trail of one key": (
        "Every event of the key in the source's commit order, with the changed values and the time,"
        " and the truncates of the table, which have no key. Deletes are included, but not their"
        " values, unless `replica_identity` is `full`: PostgreSQL does not send them. Write the key"
        " as `<t>_current` has it, such as `DATE '2026-11-21'`; Athena's has timestamps in UTC."
    ),
    "the changelog, each event once": (
        "Firehose writes events at least once, in any order. Duplicates share the event's position"
        " in the source; the state, `<t>_current` and `<t>_history` remove them already. To do so,"
        " `<t>_history` of such a table reads the whole changelog, even for a query of one day: for"
        " a few days, query `<t>_changes` instead."
    ),
    "files": "The number of data and delete files, and how many of them are small.",
    "snapshots": (
        "The retained commits: `summary` has the counts of rows and files, and the jobs' stamp."
    ),
}

_AS_OF = """\
## Live rows as of a commit time

The source's rows at any commit time since the first snapshot was complete, within `history_days`;
for an older time the query fails, and its error states the oldest possible one. Ask for a time that
the changelog has reached: events that arrive later are missing, without an error. `cdclake sql
--as-of` warns of it, and `cdclake status` shows how far each table is behind (`freshness_s`); of a
paused, stopped or scheduled stream, and with `delivery: firehose`, that may be long. The query
reads the whole changelog and nothing else: for a recent time read the state
[as above](#live-rows-as-they-were-an-hour-ago), which lacks the changes not applied by
then ([decision 71](decisions/0071-as-of-from-the-changelog-alone.md)). Athena has the query as a
saved query of the workgroup, unless the [shard is large](deployment.md#names-that-cannot-change);
its `?` is a text such as `'2026-11-21 14:00:00 UTC'`.
`cdclake sql QUERY --as-of 2026-11-21T14:00:00Z` returns the same rows in DuckDB. This code builds
the query for Spark; without the argument `SPARK` it builds the one for Athena and Trino:

```python
from pathlib import Path

from cdclake.config.resolve import load_plan
from cdclake.iceberg.as_of_query import AS_OF, as_of_query
from cdclake.iceberg.saved_queries import SPARK

plan = load_plan(Path("pipelines/shop.yaml"))
text = as_of_query(plan.table("orders", of="file"), plan, SPARK)[AS_OF]
spark.sql(text, args=["2026-11-21T14:00:00Z"]).show()
```

In Athena and Trino a large value that PostgreSQL did not send with a changed key is NULL.
Tables with `delivery: firehose` have `cdclake sql --as-of` alone. Days that were collapsed before
`history_days` was raised stay so: `cdclake sql --as-of` refuses them, these queries do not, and
lack the older rows of each key.

A column that was declared after the commit time is NULL in all rows, also one that had left the
file and came back, as after a [change of type](how-to/change-a-table.md): read its earlier values
in `cdc_dropped_<column>` of `<t>_changes`. `cdclake sql --as-of` warns of columns without a
value until that time, these queries do not.
"""
_NEW_EVENTS = """\
## New events since the last read

Each of these has every row of `<t>_changes` once, also after a restart of the connector, a
compaction, or a `cdclake replay`, which adds its events as new rows. Tests execute this code
(`tests/spark/test_shown_readers.py`). [Stream a changelog](how-to/stream-a-changelog.md) has the
rest: readers that end before they have read a commit or were down for too long, collapsed history,
changelogs that Firehose writes.

Spark streams what follows the newest snapshot, after that snapshot's rows; `write(rows, batch)` is
your function. After a restart run the last two lines with the same `since` and `checkpoint`:

```python
table = "lake.cdc_iceberg.orders_changes"
newest = spark.table(f"{table}.snapshots").orderBy("committed_at", ascending=False).first()
write(spark.read.option("snapshot-id", newest.snapshot_id).table(table), 0)
since = int(newest.committed_at.timestamp() * 1000) + 1
changes = spark.readStream.format("iceberg").option("stream-from-timestamp", since).load(table)
query = changes.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()
```

PyIceberg reads what was added after the snapshot `last`, None at first. `table` has just been
loaded from the catalog; store `last` together with the rows:

```python
newest = table.current_snapshot().snapshot_id
if newest != last:
    added = table.incremental_append_scan(from_snapshot_id_exclusive=last)
    write((added if last else table.scan(snapshot_id=newest)).to_arrow())
    last = newest
```

DuckDB reads what was ingested after `through`, at first `1970-01-01 00:00:00+00`. `location` is the
table's current `metadata_location` in Glue, and `session` has loaded the extension `iceberg`; store
`through` together with the rows. Not for changelogs that Firehose writes:

```python
added = f"FROM iceberg_scan('{location}') WHERE cdc_ingested_at > '{through}'"
write(session.sql(f"SELECT * {added}").fetchall())
[(newest,)] = session.sql(f"SELECT max(cdc_ingested_at)::VARCHAR {added}").fetchall()
through = newest or through
```
"""
_READERS = """\
## Engines

`lake: readers:` lists the engines that must be able to read the lake; `cdclake validate` refuses
settings that one of them cannot read, and notes the columns whose values one may cut. cdclake
writes position deletes (with format version 3 deletion vectors), and never equality deletes; nor
does its [Iceberg sink](connectors.md#the-iceberg-sink), which only appends. Another writer of the
same lake may, as Flink does in upsert mode.

The tables have [few types](types.md): a uuid, a time of day and JSON are text, timestamps have
microseconds. Changelogs and states also have lists of text (`{unavailable}`,
`{missing}`), and states a map of text (`{positions}`). "{not_stated}": no
statement of the vendor was found. A service has no version but the month of its newest fact.

| engine | version | format versions | position deletes | deletion vectors | equality deletes \
| types | `<t>_current` | attached by | limits | source, date |
|---|---|---|---|---|---|---|---|---|---|---|
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
        f"{_SOURCE_ROWS}; after an UPDATE of a row's key, large values that PostgreSQL did not"
        " send with it are NULL until it is applied",
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


def page() -> str:
    """Return the expected text of the page."""
    engines = _readers_section()
    return "\n".join(
        [
            _BEGINNING,
            *_sections(),
            _AS_OF,
            _NEW_EVENTS,
            engines,
            "",
            _seen() + _SPARK,
            costs_section(),
            "",
        ]
    )


def _seen() -> str:
    return _SEEN.format(rows="\n".join(f"| {' | '.join(cells)} |" for cells in _SEEN_ROWS))


def _readers_section() -> str:
    introduction = _READERS.format(
        unavailable=naming.UNAVAILABLE,
        missing=naming.TOAST_MISSING,
        positions=naming.VALUE_POSITIONS,
        not_stated=NOT_STATED,
    )
    return introduction + "\n".join(_readers())


def _readers() -> Iterator[str]:
    for facts in READER_FACTS.values():
        cells = (
            *(facts.title, facts.version, ", ".join(map(str, facts.formats))),
            *(fact.text for fact in _facts(facts).values()),
            *(facts.views, facts.attached_by, facts.limits, _sources(facts)),
        )
        yield f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _facts(facts: ReaderFacts) -> dict[str, Fact]:
    return {
        "position deletes": facts.position_deletes,
        "deletion vectors": facts.deletion_vectors,
        "equality deletes": facts.equality_deletes,
        "types": facts.types,
    }


def _sources(facts: ReaderFacts) -> str:
    """Return the sources of one engine's facts, each once, with the dates of reading them."""
    subjects: dict[str, list[str]] = {}
    for subject, fact in _facts(facts).items():
        if fact.source:
            subjects.setdefault(f"{fact.source}, {fact.read_on}", []).append(subject)
    named = [f"{', '.join(about)}: {source}" for source, about in subjects.items()]
    return ". ".join([*named, f"other: {facts.source}, {facts.read_on}"])


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
