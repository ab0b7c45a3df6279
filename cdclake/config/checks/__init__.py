"""Cross checks: how the parts of a pipeline file fit together.

A check takes a document and its tables and yields problems; `CHECKS` and `AWS_CHECKS` list
them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cdclake.config.checks import (
    addresses,
    arns,
    avro,
    aws,
    bulk,
    columns,
    connectors,
    delivery_size,
    derived,
    engines,
    firehose,
    monitoring,
    names,
    polls,
    publish,
    put_roles,
    put_streams,
    puts,
    quality,
    secrets,
    storage_classes,
    web_logs,
    withholding,
)
from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem

Check = Callable[[Document, Sequence[TableOutline]], Iterable[Problem]]

CHECKS: tuple[Check, ...] = (
    names.check_table_keys,
    names.check_lake_names,
    names.check_topics,
    names.check_column_names,
    columns.check_key,
    columns.check_partitions,
    columns.check_sorting,
    columns.check_replica_identity,
    columns.check_renamed,
    engines.check_format_version,
    engines.check_policies,
    bulk.check_bulk,
    avro.check_avro,
    polls.check_polls,
    firehose.check_use,
    firehose.check_domains,
    firehose.check_quotas,
    secrets.check_secrets,
    web_logs.check_contents,
    web_logs.check_settings,
    puts.check_columns,
    puts.check_put_routes,
    put_streams.check_names,
    put_streams.check_sizes,
    derived.check_derived,
    connectors.check_connectors,
    quality.check_quality,
    withholding.check_withholding,
    publish.check_publish,
)
AWS_CHECKS: tuple[Check, ...] = (
    aws.check_storage,
    aws.check_kafka,
    aws.check_region,
    arns.check_arns,
    aws.check_database,
    aws.check_name,
    aws.check_schedules,
    aws.check_job_schedules,
    aws.check_delivery,
    delivery_size.check_delivery_size,
    put_roles.check_put_roles,
    aws.check_shards,
    addresses.check_addresses,
    monitoring.check_freshness,
    web_logs.check_images,
    polls.check_deployed_polls,
    storage_classes.check_storage_classes,
)
