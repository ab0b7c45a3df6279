"""Quarantined events of a lake with their key, and every reason with column and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.debezium.refusal_details import RefusalDetail, RefusalDetails
from cdclake.debezium.refusals import TOO_OLD, is_withheld, is_without_values, without_value
from cdclake.delivery_remedies import repair_refused, retry_refused
from cdclake.jobs.reader.duck import Reader
from cdclake.local.reader.refused_records import RefusedRecord, refused_records
from cdclake.plan import Plan, Table
from cdclake.postgres.source_names import repair_lacking
from cdclake.redrive.failed_events import FailedEvents
from cdclake.redrive.failed_rows import Origin


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Quarantine of a lake, and what repairs the events in it."""

    plan: Plan
    reader: Reader
    file: str  # the pipeline file
    applying: str  # instruction that applies a changed file
    options: str = ""  # options that commands need for this lake: a deployed one needs some

    @property
    def is_deployed(self) -> bool:
        """Return whether it is the quarantine of a deployed lake."""
        return self.options != ""


def quarantined_events(quarantine: Quarantine, table: str | None, limit: int) -> dict[str, Any]:
    """Return the newest quarantined events of a table, or of all, up to `limit`."""
    plan = quarantine.plan
    chosen = plan.all_tables if table is None else (plan.table(table),)
    records = refused_records(quarantine.reader, [t.name for t in chosen], limit)
    by_name = {t.name: t for t in chosen}
    events = [
        event
        for name in dict.fromkeys(record.table for record in records)
        for event in _events(quarantine, by_name[name], [r for r in records if r.table == name])
    ]
    return {"ok": True, "table": table, "events": events}


def _events(
    quarantine: Quarantine, table: Table, records: Sequence[RefusedRecord]
) -> Iterator[dict[str, Any]]:
    plan = quarantine.plan
    details, failed = RefusalDetails(table, plan), FailedEvents(plan)
    values = [record.value for record in records]
    if plan.format == "avro":
        from cdclake.jobs.stream.avro_values import AvroValues  # needs an extra
        from cdclake.jobs.stream.schema_registry import registry_of

        values = AvroValues(registry_of(plan)).as_json(values)
    for record, value in zip(records, values, strict=True):
        if record.is_redriven:
            # Firehose's function refused it; the stream's decoder would miss the record's key.
            found, key = details.recorded(record.reason, value), _failed_key(failed, table, value)
        else:
            found, key = details.reasons(record.key, value), details.key(record.key, value)
        yield {"table": table.name, "key": key, **_shown(quarantine, table, record, found)}


def _shown(
    quarantine: Quarantine, table: Table, record: RefusedRecord, found: Sequence[RefusalDetail]
) -> dict[str, Any]:
    at = datetime.fromtimestamp(record.quarantined_us / 1e6, UTC)
    reasons = found or [RefusalDetail(without_value(record.reason))]
    return {
        "at": at.isoformat(timespec="milliseconds"),
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "bytes": len(record.key or b"") + len(record.value or b""),
        "withheld": is_withheld(record.reason),
        "accepted_now": not found,
        "reasons": [detail._asdict() for detail in reasons],
        "remedy": _remedy(quarantine, table, record.reason, not found),
    }


def _failed_key(
    failed: FailedEvents, table: Table, value: bytes | None
) -> Mapping[str, Any] | None:
    """Return the key in the bytes of a failed record: an event, or a row of the changelog."""
    found = failed.read(value or b"", Origin.one(table.name))
    return None if found is None else dict(zip(table.key, found.key, strict=True))


def _remedy(quarantine: Quarantine, table: Table, reason: str, accepted_now: bool) -> str | None:
    """Return what brings the row into the lake; None if a rule withholds it on purpose."""
    if is_withheld(reason):
        return None
    if reason == TOO_OLD:
        return "update the row in the source, whose new event brings it"
    options = quarantine.options
    if is_without_values(reason):
        return repair_lacking(table, options=options, is_deployed=quarantine.is_deployed)
    if table.delivery == "poll":
        return repair_refused(table.name, table.delivery, options=options)
    retry = retry_refused(table.name, table.delivery, options=options)
    if accepted_now:
        return retry
    declare = f"declare in {quarantine.file} what the values need"
    return f"{declare}, {quarantine.applying}, then {retry}"


def quarantine_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show the events to a reader."""
    if not answer["events"]:
        of = f"of {answer['table']}" if answer["table"] else "of the file's tables"
        yield f"{naming.QUARANTINE} has no event {of}"
    for event in answer["events"]:
        key = "unreadable" if event["key"] is None else _key(event["key"])
        yield f"{event['table']} {key}  {event['at']}  {_place(event)}"
        for detail in event["reasons"]:
            column = f"{detail['column']}: " if detail["column"] else ""
            value = "" if detail["value"] is None else f"  value {detail['value']}"
            yield f"   {column}{detail['reason']}{value}"
        if event["withheld"]:
            yield "   a rule withholds the row, as declared"
        else:
            yield f"   remedy: {event['remedy']}"


def _place(event: Mapping[str, Any]) -> str:
    if event["partition"] is None:
        return f"line {event['offset']} of {event['topic']}"
    return f"offset {event['offset']}"


def _key(key: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in key.items())
