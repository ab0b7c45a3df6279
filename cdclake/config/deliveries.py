"""The streams of Firehose that a file without problems asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdclake import naming
from cdclake.config.firehose_model import settings_of
from cdclake.config.model import PipelineFile
from cdclake.delivery import DeliveryStream
from cdclake.plan import Table


def resolve_deliveries(file: PipelineFile, tables: Mapping[str, Table]) -> list[DeliveryStream]:
    """One for each domain and for each table without one; `tables` are by their key in the file."""
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
    """The domain's topic for its tables, else the table's own."""
    return own if domain is None else naming.domain_topic(pipeline, domain)


def _stream(file: PipelineFile, domain: str | None, tables: Sequence[Table]) -> DeliveryStream:
    settings = settings_of(file.firehose.model_dump(exclude_unset=True), domain)
    return DeliveryStream(
        name=domain or tables[0].name,
        topic=tables[0].topic,
        tables=tuple(table.name for table in tables),
        routed=domain is not None,
        buffer_seconds=settings.buffer.seconds,
        buffer_mib=settings.buffer.mib,
        function_seconds=settings.function.seconds,
        function_mib=settings.function.mib,
        function_retries=settings.function.retries,
        retry_seconds=settings.retry_seconds,
        backup=settings.backup,
        error_prefix=file.firehose.error_prefix,
        mib_per_second=settings.mib_per_second,
        route=settings.route,
    )
