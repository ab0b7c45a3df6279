"""Report of an erasure: places that it does not reach, and the lines for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.firehose.redrive_stream import lateness_minutes
from cdclake.iceberg.dialect import TRINO
from cdclake.plan import Plan, Table
from cdclake.trace.stored_report import places_outside

_PLACES = ("stored", "elsewhere")


def places_left(
    plan: Plan,
    table: Table,
    *,
    in_kafka: bool,
    undeclared: Sequence[str],
    records: Sequence[str],
) -> list[dict[str, str]]:
    """Return the places that may have the rows after an erasure, and until when.

    Args:
        plan: Plan of the lake.
        table: Table of the rows.
        in_kafka: Whether the table's topic may have its events.
        undeclared: Folders of the database whose tables the plan does not have.
        records: Tables with quarantined records, but not in the plan; "" for records of none.
    """
    until = (
        "you drop its table and delete the folder with all versions,"
        " or declare it again and erase its rows"
    )
    kept = [
        {"where": f"{folder}, whose table the file does not declare", "until": until}
        for folder in undeclared
    ]
    copies = {"where": "copies that others made of the lake's tables", "until": "deleted there"}
    outside = places_outside(plan, table, in_kafka=in_kafka)
    kept += _undeclared_records(plan, records)
    late = (*_late_failures(plan, table), *_late_partitions(plan, table))
    return [*kept, *outside, *late, copies]


def _undeclared_records(plan: Plan, tables: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the quarantined records of tables that the file does not have, if there are some."""
    if tables:
        names = ", ".join(name or "(no table)" for name in tables)
        listed = ", ".join(map(TRINO.text, tables))
        condition = f"coalesce(\"table\", '') IN ({listed})"
        yield {
            "where": f"records in {naming.QUARANTINE} of tables that the file does not declare:"
            f" {names}",
            "until": f"you run `DELETE FROM {plan.lake_database}.{naming.QUARANTINE} WHERE"
            f" {condition}` in Athena, or on a local lake in a client of Iceberg that writes, and"
            " this command again",
        }


def _late_failures(plan: Plan, table: Table) -> Iterator[dict[str, str]]:
    """Yield the failed records that Firehose has yet to write, which the erasure cannot remove."""
    if table.delivery == "firehose":
        folder, minutes = plan.deliveries[0].error_prefix, lateness_minutes(plan, table)
        yield {
            "where": f"failed records that Firehose writes below {folder}/ later",
            "until": f"`cdclake redrive` or this command again, in {minutes} minutes or later",
        }


def _late_partitions(plan: Plan, table: Table) -> Iterator[dict[str, str]]:
    """Yield the partitions that the catalog has until a copy is written without their files."""
    for copy in plan.copies:
        if copy.table == table.name and copy.partition_by is not None:
            yield {
                "where": f"partitions of {copy.name} in the catalog, named by values",
                "until": "the next run of publish_hudi",
            }


def erased_places(
    table: Table, outcome: Mapping[str, Any], failed: Mapping[str, int], copies: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the places that had the rows, with how much of them each had.

    Derived tables and copies were written again as a whole; nothing counts their rows.

    Args:
        table: Table of the rows.
        outcome: Answer of the writer that erased them.
        failed: Failed records of Firehose, by error prefix.
        copies: Names of the Hudi copies.
    """
    counted = [
        (table.changes, "events", outcome["events"]),
        (table.name, "rows", outcome["keys"]),
        (naming.QUARANTINE, "records", outcome["records"]),
        *((prefix, "failed records", count) for prefix, count in failed.items()),
        *((name, "derived table", None) for name in outcome["derived"]),
        *((name, "Hudi copy", None) for name in copies),
    ]
    return [{"where": where, "what": what, "count": count} for where, what, count in counted]


def erasure_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the report."""
    keys = report["keys"]
    yield f"{report['table']}: erased {keys} {'key' if keys == 1 else 'keys'}"
    yield from _erased_lines(report["erased"])
    yield f"deleted {report['deleted_objects']} objects that had them"
    if report["redacted_files"]:
        yield f"overwritten in log files: {', '.join(report['redacted_files'])}"
    if report["shared"]:
        yield (
            "not searched, since other rows have the same values:"
            f" columns {', '.join(report['shared'])}"
        )
    titles = ("LEFT OVER", "in rows of other tables, which this command does not erase")
    for kind, title in zip(_PLACES, titles, strict=True):
        if report[kind]:
            yield f"{title}:"
        for place in report[kind]:
            yield f"  {place['where']}: {place['part']} ({', '.join(place['columns'])})"
    if not report["stored"]:
        yield (
            "none of their values is left where it was searched: texts in everything that the lake"
            f" stores, numbers and short texts in the files of {report['table']} and its copies"
        )
    yield "not erased:"
    for place in report["remaining"]:
        yield f"  {place['where']}, until: {place['until']}"


def _erased_lines(places: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for place in places:
        if place["count"]:
            yield f"  {place['where']}: {place['count']} {place['what']}"
    if again := [place["where"] for place in places if place["count"] is None]:
        yield f"written again without them: {', '.join(again)}"
