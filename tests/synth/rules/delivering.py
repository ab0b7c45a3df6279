"""Firehose's streams: nothing is skipped, nothing is lost, and what fails is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.synth.deployments import Template

STREAM = "AWS::KinesisFirehose::DeliveryStream"
OF_SOURCE = {
    "DirectPut": "DeliveryStreamEncryptionConfigurationInput",
    "KinesisStreamAsSource": "KinesisStreamSourceConfiguration",
    "MSKAsSource": "MSKSourceConfiguration",
}
NEEDED = {"LambdaArn", "NumberOfRetries", "BufferSizeInMBs", "BufferIntervalInSeconds"}


def reads_all_there_is(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A stream has the source that it says, or our key, and begins with what was there before."""
    if kind != STREAM:
        return
    said = properties.get("DeliveryStreamType")
    sources = {key for key in OF_SOURCE.values() if key in properties}
    if {OF_SOURCE.get(str(said))} != sources:
        yield f"{kind} of type {said} has {sorted(sources)}"
    direct = properties.get(OF_SOURCE["DirectPut"], {"KeyType": "CUSTOMER_MANAGED_CMK"})
    if direct["KeyType"] != "CUSTOMER_MANAGED_CMK":
        yield f"{kind} is under Firehose's own key"
    kafka = properties.get("MSKSourceConfiguration")
    if kafka is None:
        return
    if kafka.get("ReadFromTimestamp") != "1970-01-01T00:00:00Z":
        yield f"{kind} skips what Kafka has already"
    if kafka.get("AuthenticationConfiguration", {}).get("Connectivity") != "PRIVATE":
        yield f"{kind} reads Kafka from outside"


def appends_only(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Firehose promises no order: an update or a delete by key could be older than the row."""
    into = properties.get("IcebergDestinationConfiguration", {})
    if kind != STREAM:
        return
    if into.get("AppendOnly") is not True:
        yield f"{kind} may update rows"
    tables = into.get("DestinationTableConfigurationList", [])
    if not tables or any("UniqueKeys" in table for table in tables):
        yield f"{kind} has tables with keys, or none"
    for second_owner in ("SchemaEvolutionConfiguration", "TableCreationConfiguration"):
        if into.get(second_owner, {}).get("Enabled") is not False:
            yield f"{kind} changes tables, which the jobs own: {second_owner}"


def keeps_what_fails(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Tried again, then kept under its kind and day, with the reason in a log."""
    if kind != STREAM:
        return
    into = properties.get("IcebergDestinationConfiguration", {})
    for processor in into.get("ProcessingConfiguration", {}).get("Processors", []):
        named = {each["ParameterName"] for each in processor["Parameters"]}
        if processor["Type"] == "Lambda" and not named >= NEEDED:
            yield f"{kind} calls its function without {sorted(NEEDED - named)}"
    prefix = into.get("S3Configuration", {}).get("ErrorOutputPrefix", "")
    if "/!{firehose:error-output-type}/" not in prefix:
        yield f"{kind} puts what fails anywhere"
    if into.get("s3BackupMode") != "FailedDataOnly":
        yield f"{kind} keeps what Firehose keeps of no Iceberg table, or does not say"
    if into.get("RetryOptions", {}).get("DurationInSeconds", -1) < 0:
        yield f"{kind} tries for as long as Firehose likes"
    logged = into.get("CloudWatchLoggingOptions", {})
    if logged.get("Enabled") is not True or not {"LogGroupName", "LogStreamName"} <= set(logged):
        yield f"{kind} does not log"


def iceberg_tables_alone(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Glue refuses Iceberg's own input beside a table's, or forgets at a change what it made."""
    if kind == "AWS::Glue::Table":
        if "TableInput" in properties:
            yield f"{kind} has two descriptions"
        made = properties.get("OpenTableFormatInput", {}).get("IcebergInput", {})
        if made.get("Version") != "2":
            yield f"{kind} is not of the version that Firehose writes"


def connectivity_comes_second(template: Template) -> Iterator[str]:
    """MSK refuses connectivity at a cluster's creation; with it comes whom it admits."""
    resources = template["Resources"].items()
    admitting = [
        resource["Properties"]["ClusterArn"]
        for _, resource in resources
        if resource["Type"] == "AWS::MSK::ClusterPolicy"
    ]
    for name, resource in resources:
        if resource["Type"] != "AWS::MSK::Cluster":
            continue
        group = resource["Properties"]["BrokerNodeGroupInfo"]
        if "ConnectivityInfo" in group and {"Fn::GetAtt": [name, "Arn"]} not in admitting:
            yield f"{name}: AWS::MSK::Cluster has connectivity, and nobody is admitted by it"
