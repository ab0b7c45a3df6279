"""Resolution of a pipeline file to its `Plan`; reports all problems at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdclake import naming
from cdclake.config import literals, partition
from cdclake.config.checks import AWS_CHECKS, CHECKS
from cdclake.config.checks.connector_size import check_connector_size
from cdclake.config.checks.puts import check_folders
from cdclake.config.checks.routes import check_routes, has_routes
from cdclake.config.checks.secrets import PASSWORD_IN_KEY, PASSWORD_IN_VALUE
from cdclake.config.checks.sink_roles import check_sink_roles
from cdclake.config.connectors_model import ConnectorEntry
from cdclake.config.derived_model import DerivedEntry
from cdclake.config.derived_sql import SourceColumns, analyze
from cdclake.config.document import Document
from cdclake.config.model import PipelineFile
from cdclake.config.partial_model import outline_tables
from cdclake.config.poll_sql import relations_of
from cdclake.config.problems import InvalidPipeline, Problem, Refused, did_you_mean, sort_problems
from cdclake.config.quality_sql import RuleTable, resolve_rule
from cdclake.config.resolve_firehose import (
    resolve_deliveries,
    resolve_puts,
    resolve_web_logs,
    topic_of,
)
from cdclake.config.sizes import sized
from cdclake.config.source_model import DEFAULT_COMPATIBILITY, ApicurioRegistry, Source
from cdclake.config.table_model import ColumnEntry, TableEntry
from cdclake.config.validation_errors import structure_problems
from cdclake.config.yaml_reader import read_document
from cdclake.connectors.declared import ICEBERG_SINK_CLASS, DeclaredConnector
from cdclake.derived_table import DerivedTable
from cdclake.errors import InputError
from cdclake.hudi_copy import HudiCopy
from cdclake.plan import Column, Plan, Table
from cdclake.polling import Polling
from cdclake.quality_rule import QualityRule


def load_plan(path: Path, environment: str | None = None) -> Plan:
    """Load the file's plan, with the overlay of `environment` merged in.

    Raises `InvalidPipeline` with all problems if any environment has one.
    """
    return resolve_plan(load_file(path, environment))


def load_file(
    path: Path, environment: str | None = None, *, deployed: bool = False
) -> PipelineFile:
    """Load and check the file, with the overlay of `environment` merged in, as `load_plan` does.

    With `deployed`, the checks for AWS include this environment even if the file has no `aws:`.
    """
    document = read_document(path)
    problems = find_problems(document, deployed=deployed, environment=environment)
    problems = problems or [*check_folders(document, path.parent)]
    if problems:
        raise InvalidPipeline(str(path), problems)
    if environment is not None:
        known = document.mapping("environments")
        if environment not in known:
            hint, listed = did_you_mean(environment, known), ", ".join(known) or "none"
            raise InputError(
                f"{path} has no environment {environment!r}",
                f"{hint} The file declares: {listed}" if hint else f"the file declares: {listed}",
            )
        document = document.overlaid(environment)
    return PipelineFile.model_validate(sized(document).values)


def find_problems(
    document: Document, *, deployed: bool = False, environment: str | None = None
) -> list[Problem]:
    """Return every problem of the file and of each environment's overlay, in the file's order.

    The checks for AWS run only if `aws:` is declared and, with `deployed`, for this environment: a
    local pipeline need not satisfy them.
    """
    found = list(document.problems)
    if not document.values:
        return sort_problems(found)
    unreadable = {(problem.line, problem.column) for problem in found}
    versions: dict[str | None, Document] = {None: sized(document)}
    for name, overlay in document.mapping("environments").items():
        if isinstance(overlay, dict):
            versions[name] = sized(document.overlaid(name))
    for overlaid_by, version in versions.items():
        tables = outline_tables(version)
        on_aws = "aws" in version.values or (deployed and overlaid_by == environment)
        checks = (*CHECKS, *AWS_CHECKS) if on_aws else CHECKS
        checked = [problem for check in checks for problem in check(version, tables)]
        wrong = [*structure_problems(version), *checked]
        if not found and not wrong:  # otherwise there is no plan
            wrong += _plan_problems(version, on_aws=on_aws)
        if overlaid_by is not None:
            wrong = [*_naming_environment(document, overlaid_by, wrong, known=found)]
        for problem in wrong:
            if (problem.line, problem.column) not in unreadable:
                found.append(problem)
    return sort_problems(_without_repeated_passwords(found))


def _naming_environment(
    document: Document, name: str, problems: Iterable[Problem], *, known: Sequence[Problem]
) -> Iterator[Problem]:
    """Name the environment in the problems that only it has, at places outside of its overlay."""
    overlay = document.places_below(("environments", name))
    for problem in problems:
        if problem in known or (problem.line, problem.column) in overlay:
            yield problem
        else:
            yield replace(problem, message=f"in the environment {name!r}: {problem.message}")


def _without_repeated_passwords(found: Sequence[Problem]) -> Iterator[Problem]:
    """Leave out the other problems of a value with a password: they may repeat a part of it."""
    messages = (PASSWORD_IN_KEY, PASSWORD_IN_VALUE)
    places = {(each.line, each.column) for each in found if each.message.endswith(messages)}
    for problem in found:
        if problem.message.endswith(messages) or (problem.line, problem.column) not in places:
            yield problem


def _plan_problems(document: Document, *, on_aws: bool) -> Iterator[Problem]:
    """Yield the problems that only the plan shows."""
    if not has_routes(document) and not on_aws:
        return
    plan = resolve_plan(PipelineFile.model_validate(document.values))
    if has_routes(document):
        yield from check_routes(document, plan)
    if on_aws:
        yield from check_sink_roles(document, plan)
        yield from check_connector_size(document, plan)


def resolve_plan(file: PipelineFile) -> Plan:
    """Return the plan of a valid file."""
    keys = {_table_name(key, e): [*map(naming.lake_name, e.key)] for key, e in file.tables.items()}
    every = {key: _resolve_table(file.name, key, e, keys) for key, e in file.tables.items()}
    tables = {key: table for key, table in every.items() if table.polling is None}
    return Plan(
        name=file.name,
        source_database=file.source.database if file.source else "",
        snapshot_mode=file.source.snapshot.mode if file.source else "initial",
        **_event_format(file.source),
        lake_database=file.lake.database,
        readers=tuple(file.lake.readers),
        format_version=file.lake.format_version,
        history_days=file.lake.history_days,
        stream_readers_hours=file.lake.stream_readers_hours,
        trigger_seconds=file.stream.trigger_seconds,
        mode=file.stream.mode,
        schedules=file.schedules.model_dump(exclude_none=True),
        not_representable=file.policies.not_representable,
        stop_table_after=file.policies.stop_table_after,
        oversized_records=file.policies.oversized_records,
        new_columns=file.policies.new_columns,
        widened_columns=file.policies.widened_columns,
        tables=tuple(tables.values()),
        polled=tuple(table for table in every.values() if table.polling is not None),
        deliveries=tuple(resolve_deliveries(file, tables)),
        web_logs=tuple(resolve_web_logs(file)),
        puts=tuple(resolve_puts(file)),
        derived=tuple(
            _resolve_derived(name, entry, tuple(every.values()))
            for name, entry in file.derived.items()
        ),
        copies=tuple(_resolve_copies(file)),
        connectors=tuple(
            _resolve_connector(name, entry, tables) for name, entry in file.connectors.items()
        ),
    )


def _event_format(source: Source | None) -> dict[str, Any]:
    """Return the plan's fields about the format of events; none for JSON."""
    if source is None or source.format == "json" or source.registry is None:
        return {}
    if isinstance(source.registry, ApicurioRegistry):
        return {"format": "avro", "registry": source.registry.apicurio}
    mode = source.compatibility or DEFAULT_COMPATIBILITY
    return {"format": "avro", "registry": source.registry, "compatibility": mode}


def _table_name(spelled: str, entry: TableEntry) -> str:
    return entry.name or naming.lake_name(literals.parse_table_key(spelled)[1])


def _resolve_table(
    pipeline: str, spelled: str, entry: TableEntry, keys: Mapping[str, Sequence[str]]
) -> Table:
    schema, table = literals.parse_table_key(spelled)
    table_name = _table_name(spelled, entry)
    lake_names = {source: _lake_name(source, column) for source, column in entry.columns.items()}
    identity = literals.parse_replica_identity(entry.replica_identity or "default")
    polling = _resolve_polling(entry, lake_names)
    return Table(
        schema=schema,
        table=table,
        name=table_name,
        topic=topic_of(pipeline, entry.domain, naming.topic_name(pipeline, schema, table)),
        key=tuple(naming.lake_name(column) for column in entry.key),
        columns=tuple(
            _resolve_column(source, column)
            for source, column in entry.columns.items()
            if not column.exclude
        ),
        excluded=tuple(source for source, column in entry.columns.items() if column.exclude),
        delivery=entry.delivery if polling is None else "poll",
        polling=polling,
        apply=entry.apply or ("each_batch" if entry.delivery == "stream" else "scheduled"),
        # A poll reads whole rows, so that no value is ever unsent.
        replica_identity=identity.kind if polling is None else "full",
        replica_identity_index=identity.index_name,
        replica_identity_declared=entry.replica_identity is not None,
        partition_by=tuple(
            _resolve_transform(spelling, lake_names) for spelling in entry.partition_by
        ),
        maintenance=entry.maintenance.by,
        sort_by=tuple(lake_names[column] for column in entry.maintenance.sort_by),
        state_freshness=entry.state_freshness,
        deletes=entry.deletes,
        shard=entry.shard,
        checks=tuple(_resolve_checks(table_name, entry, keys)),
    )


def _resolve_polling(entry: TableEntry, lake_names: Mapping[str, str]) -> Polling | None:
    if entry.capture is None:
        return None
    poll = entry.capture.poll
    return Polling(
        by=lake_names[poll.by],
        every=poll.every,
        deletes=poll.deletes,
        sweep_every=poll.sweep_every or "",
        overlap_minutes=poll.overlap_minutes,
        query=(poll.query or "").strip().removesuffix(";"),
        reads=() if poll.query is None else relations_of(poll.query),
    )


def _resolve_checks(
    name: str, entry: TableEntry, keys: Mapping[str, Sequence[str]]
) -> Iterator[QualityRule]:
    flowing = {s: c for s, c in entry.columns.items() if not c.exclude}
    types = {s: literals.parse_column_type(c.type) if c.type else None for s, c in flowing.items()}
    table = RuleTable(name, {s: _lake_name(s, c) for s, c in flowing.items()}, types)
    for rule in entry.checks:
        yield from resolve_rule(rule, table, keys)


def _resolve_derived(name: str, entry: DerivedEntry, tables: Sequence[Table]) -> DerivedTable:
    facts = analyze(
        entry.sql,
        [SourceColumns(t.name, t.key, tuple(c.name for c in t.columns)) for t in tables],
        entry.key,
    )
    return DerivedTable(
        name=name,
        sql=entry.sql,
        key=tuple(entry.key),
        partition_by=tuple(
            _resolve_transform(s, {c: c for c in facts.columns}) for s in entry.partition_by
        ),
        format=entry.format,
        schedule=entry.schedule,
        sources=facts.sources,
        source_keys=facts.source_keys,
    )


def _resolve_copies(file: PipelineFile) -> Iterator[HudiCopy]:
    for spelled, entry in file.tables.items():
        table = _table_name(spelled, entry)
        for hudi in (each.hudi for each in entry.publish):
            by = hudi.partition_by
            yield HudiCopy(
                name=hudi.name or naming.hudi_name(table),
                table=table,
                type=hudi.type,
                partition_by=None if by is None else _lake_name(by, entry.columns[by]),
                schedule=hudi.schedule,
            )


def _resolve_connector(
    name: str, entry: ConnectorEntry, tables: Mapping[str, Table]
) -> DeclaredConnector:
    return DeclaredConnector(
        name=name,
        plugin=entry.plugin,
        connector_class=entry.connector_class or ICEBERG_SINK_CLASS,
        tables=tuple(tables[spelled].name for spelled in entry.tables),
        tasks=entry.tasks,
        mcus=entry.mcus,
        settings=dict(entry.settings),
    )


def _resolve_column(source: str, entry: ColumnEntry) -> Column:
    if entry.type is None:
        raise Refused(f"the column {source!r} has no type", "write its `type:`")
    mask = literals.parse_mask(entry.mask) if entry.mask is not None else None
    return Column(
        source=source,
        name=_lake_name(source, entry),
        type=str(literals.parse_column_type(entry.type)),
        mask=mask.kind if mask else None,
        truncate_to=mask.length if mask else None,
        renamed_from=tuple(entry.renamed_from),
    )


def _lake_name(source: str, entry: ColumnEntry) -> str:
    """Return the column's name in the lake; a renamed column keeps its first one.

    Existing rows and queries use that name, and so does the changelog where it marks values that
    were not sent.
    """
    return naming.lake_name(entry.renamed_from[0] if entry.renamed_from else source)


def _resolve_transform(spelling: str, lake_names: Mapping[str, str]) -> str:
    transform = partition.parse_transform(spelling)
    return transform.render(lake_names[transform.column])
