"""A Firehose stream into Iceberg tables: it appends rows, and stores failed records in S3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import Aws, aws_kinesisfirehose, aws_logs
from constructs import Construct

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.stacks.constructs import firehose_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.firehose_source import DeliverySource
from cdclake.stacks.constructs.grant import Grant, arn, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.service_role import ServiceRole

_Stream = aws_kinesisfirehose.CfnDeliveryStream
Processor = _Stream.ProcessorProperty
_Into = _Stream.IcebergDestinationConfigurationProperty
_JQ = "JQ-1.6"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collecting:
    """Buffering, retries and folder of failed records of a stream."""

    seconds: int
    mib: int
    retry_seconds: int
    error_prefix: str  # folder of the bucket

    @staticmethod
    def of(stream: DeliveryStream) -> Collecting:
        """Return the values of the plan's stream."""
        return Collecting(
            seconds=stream.buffer_seconds,
            mib=stream.buffer_mib,
            retry_seconds=stream.retry_seconds,
            error_prefix=stream.error_prefix,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirehoseDestination:
    """Tables of one database; `writable` are their name patterns in the role, maybe with `*`."""

    database: str
    tables: Sequence[str]
    writable: Sequence[str]
    warehouse: BucketReference
    state: BucketReference


class FirehoseStream(Construct):
    """Stream with its role and the log stream of its errors."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        source: DeliverySource,
        into: FirehoseDestination,
        collecting: Collecting,
        processors: Sequence[Processor],
        calls: Sequence[Grant],  # that the processors need
        log: LogGroup,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        grants = [*source.grants(), *_delivers(into, collecting), *calls]
        grants += [firehose_grants.logs_to(log.name, name), through_s3(context.key_arn)]
        role = ServiceRole(
            self,
            "Role",
            service="firehose",
            for_arn=f"firehose:{Aws.REGION}:{Aws.ACCOUNT_ID}:deliverystream/{name}",
            statements=grants,
        )
        stream = _Stream(
            self,
            "Stream",
            delivery_stream_name=name,
            **source.properties(role.arn),
            iceberg_destination_configuration=_Into(
                role_arn=role.arn,
                **_appended(into),
                **_collected(collecting),
                processing_configuration=_processed(processors),
                s3_configuration=_kept(collecting, into.state, role.arn),
                cloud_watch_logging_options=self._logging_options(name, log),
            ),
        )
        source.suppress(stream)
        role.users.append(stream)  # Firehose may look at its tables when it creates the stream

    def _logging_options(
        self, name: str, log: LogGroup
    ) -> aws_kinesisfirehose.CfnDeliveryStream.CloudWatchLoggingOptionsProperty:
        """Add the log stream: Firehose does not create one."""
        made = aws_logs.CfnLogStream(self, "Log", log_group_name=log.name, log_stream_name=name)
        return _Stream.CloudWatchLoggingOptionsProperty(
            enabled=True, log_group_name=log.name, log_stream_name=made.ref
        )


def by_function(function_arn: str, *, seconds: int, mib: float, retries: int) -> Processor:
    """Return a processor that decodes buffered records with a function."""
    return _processor(
        "Lambda",
        LambdaArn=function_arn,
        NumberOfRetries=str(retries),
        BufferIntervalInSeconds=str(seconds),
        BufferSizeInMBs=f"{mib:g}",
    )


def by_query(query: str) -> Processor:
    """Return a processor that chooses the table of each row with a jq query."""
    return _processor("MetadataExtraction", MetadataExtractionQuery=query, JsonParsingEngine=_JQ)


def _processor(kind: str, **parameters: str) -> Processor:
    return Processor(
        type=kind,
        parameters=[
            _Stream.ProcessorParameterProperty(parameter_name=name, parameter_value=value)
            for name, value in parameters.items()
        ],
    )


def _delivers(into: FirehoseDestination, collecting: Collecting) -> list[Grant]:
    return [
        *firehose_grants.appends(into.database, into.writable, into.warehouse),
        *firehose_grants.keeps_failed(into.state, collecting.error_prefix),
    ]


def _appended(into: FirehoseDestination) -> dict[str, Any]:
    """Return the destination tables, append-only, so that Firehose scales automatically.

    Firehose neither creates the tables nor changes their schemas: other parts own them.
    """
    tables = [
        _Stream.DestinationTableConfigurationProperty(
            destination_database_name=into.database, destination_table_name=table
        )
        for table in into.tables
    ]
    return {
        "catalog_configuration": _Stream.CatalogConfigurationProperty(
            catalog_arn=arn("glue", "catalog")
        ),
        "append_only": True,
        "destination_table_configuration_list": tables,
        "schema_evolution_configuration": _Stream.SchemaEvolutionConfigurationProperty(
            enabled=False
        ),
        "table_creation_configuration": _Stream.TableCreationConfigurationProperty(enabled=False),
    }


def _processed(
    processors: Sequence[Processor],
) -> aws_kinesisfirehose.CfnDeliveryStream.ProcessingConfigurationProperty:
    return _Stream.ProcessingConfigurationProperty(enabled=True, processors=list(processors))


def _collected(collecting: Collecting) -> dict[str, Any]:
    return {
        "buffering_hints": _Stream.BufferingHintsProperty(
            interval_in_seconds=collecting.seconds, size_in_m_bs=collecting.mib
        ),
        "retry_options": _Stream.RetryOptionsProperty(duration_in_seconds=collecting.retry_seconds),
        # The only mode of Iceberg tables, by Firehose's API reference; CloudFormation has two.
        "s3_backup_mode": "FailedDataOnly",
    }


def _kept(
    collecting: Collecting, state: BucketReference, role_arn: str
) -> aws_kinesisfirehose.CfnDeliveryStream.S3DestinationConfigurationProperty:
    """Return the S3 destination of failed records; the bucket's default key encrypts them."""
    return _Stream.S3DestinationConfigurationProperty(
        bucket_arn=state.arn,
        role_arn=role_arn,
        error_output_prefix=naming.delivery_error_prefix(collecting.error_prefix),
        compression_format="GZIP",
    )
