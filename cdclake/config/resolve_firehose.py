"""Firehose streams of a valid pipeline file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.config import literals, partition
from cdclake.config.firehose_model import StreamSettings, settings_of, with_settings_of_all
from cdclake.config.model import PipelineFile
from cdclake.config.puts_model import PutColumns, PutsEntry
from cdclake.config.weblogs_model import WebLogsEntry
from cdclake.firehose.stream import ARRIVED_AT, DeliveryStream
from cdclake.plan import Table
from cdclake.puts import put_table
from cdclake.puts.put_table import PutColumn, PutStream, PutTable
from cdclake.web_logs.model import FUNCTION, WebLogs, request_tables, status_query


def resolve_deliveries(file: PipelineFile, tables: Mapping[str, Table]) -> list[DeliveryStream]:
    """Return a stream per domain and per table without one; `tables` are by key in the file."""
    delivered = {key: entry for key, entry in file.tables.items() if entry.delivery == "firehose"}
    domains: dict[str, list[Table]] = {}
    streams = []
    for key, entry in delivered.items():
        if entry.domain is None:
            streams.append(_stream(file, None, [tables[key]]))
        else:
            domains.setdefault(entry.domain, []).append(tables[key])
    return streams + [_stream(file, domain, listed) for domain, listed in domains.items()]


def topic_of(pipeline: str, domain: str | None, own: str) -> str:
    """Return the topic of the table's domain, or the table's own topic."""
    return own if domain is None else naming.domain_topic(pipeline, domain)


def _stream(file: PipelineFile, domain: str | None, tables: Sequence[Table]) -> DeliveryStream:
    settings = settings_of(file.firehose.model_dump(exclude_unset=True), domain)
    return DeliveryStream(
        name=domain or tables[0].name,
        topic=tables[0].topic,
        tables=tuple(table.name for table in tables),
        routed=domain is not None,
        route=settings.route,
        **_fields(file, settings),
    )


def resolve_web_logs(file: PipelineFile) -> list[WebLogs]:
    """Return the file's web logs, each with its stream."""
    shared = file.firehose.model_dump(exclude_unset=True)
    return [
        _web_logs(file, name, web_logs_settings(shared, entry.model_dump(exclude_unset=True)))
        for name, entry in file.weblogs.items()
    ]


def web_logs_settings(section: Mapping[str, Any], own: Mapping[str, Any]) -> WebLogsEntry:
    """Return the web logs' own settings merged over those of `section` (`firehose:`)."""
    return WebLogsEntry.model_validate(with_settings_of_all(section, own))


def _web_logs(file: PipelineFile, name: str, entry: WebLogsEntry) -> WebLogs:
    by_status = entry.route == "status"
    statuses = tuple(entry.statuses) if by_status else ()
    tables = request_tables(name, entry.route, statuses)
    stream = DeliveryStream(
        name=name,
        source=entry.source,
        topic=name if entry.source == "kinesis" else "",
        tables=tables,
        routed=by_status,
        route=status_query(file.lake.database, name, statuses) if by_status else None,
        table=None if by_status else name,
        function=FUNCTION,
        **_fields(file, entry),
    )
    images = entry.images
    return WebLogs(
        stream=stream,
        by=entry.route,
        statuses=statuses,
        nginx=images.nginx,
        router=images.router,
    )


def resolve_puts(file: PipelineFile) -> list[PutStream]:
    """Return the file's streams of put records, each with its tables."""
    shared = file.firehose.model_dump(exclude_unset=True)
    return [
        _put_stream(file, name, puts_settings(shared, entry.model_dump(exclude_unset=True)))
        for name, entry in file.puts.items()
    ]


def puts_settings(section: Mapping[str, Any], own: Mapping[str, Any]) -> PutsEntry:
    """Return the entry's own settings merged over those of `section` (`firehose:`)."""
    return PutsEntry.model_validate(with_settings_of_all(section, own))


def _put_stream(file: PipelineFile, name: str, entry: PutsEntry) -> PutStream:
    routed = entry.tables or {}
    targets = [_put_table(table, own, own.values or [table]) for table, own in routed.items()]
    if not routed:
        targets = [_put_table(name, entry, [])]
    return PutStream(
        stream=DeliveryStream(
            name=name,
            source=entry.source,
            topic=name if entry.source == "kinesis" else "",
            tables=tuple(table.name for table in targets),
            routed=bool(routed),
            table=None if routed else name,
            function=put_table.FUNCTION,
            **_fields(file, entry),
        ),
        targets=tuple(targets),
        route=entry.route,
        database=file.lake.database,
        unknown_fields=entry.unknown_fields,
        transform=entry.transform,
    )


def _put_table(name: str, entry: PutColumns, values: Sequence[str]) -> PutTable:
    lake_names = {field: naming.lake_name(field) for field in entry.columns}
    transforms = [partition.parse_transform(spelling) for spelling in entry.partition_by]
    return PutTable(
        name=name,
        columns=tuple(
            PutColumn(field, lake_names[field], str(literals.parse_column_type(spelling)))
            for field, spelling in entry.columns.items()
        ),
        key=tuple(lake_names[field] for field in entry.key),
        partition_by=tuple(
            t.render({**lake_names, ARRIVED_AT: ARRIVED_AT}[t.column]) for t in transforms
        ),
        values=tuple(values),
    )


def _fields(file: PipelineFile, settings: StreamSettings) -> dict[str, Any]:
    return {
        "buffer_seconds": settings.buffer.seconds,
        "buffer_mib": settings.buffer.mib,
        "function_seconds": settings.function.seconds,
        "function_mib": _as_whole(settings.function.mib),
        "function_retries": settings.function.retries,
        "retry_seconds": settings.retry_seconds,
        "error_prefix": file.firehose.error_prefix,
        "mib_per_second": settings.mib_per_second,
    }


def _as_whole(mib: float) -> float:
    """Return a whole number as an integer, as earlier plans have it."""
    return int(mib) if mib == int(mib) else mib
