"""What a deployment needs done that CloudFormation has no resource for, as custom resources.

Each is done again without harm. Nothing is done at a deletion: what was copied goes with its
bucket.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3

from cdclake.cloudformation import answer, answer_failure

log = logging.getLogger()
log.setLevel(logging.INFO)

_WAIT_S, _POLL_S = 840.0, 10.0  # of the 900 that a function may take

Properties = Mapping[str, Any]


def copy_files(properties: Properties) -> dict[str, str]:
    """Copy what `cdk deploy` has uploaded into the deployment's own bucket.

    `Bucket`, and `Files`, each with `FromBucket`, `FromKey`, `ToKey`; encrypted as the bucket's
    default says. The files are named by their content, so a copy over a copy changes nothing.
    """
    s3 = boto3.client("s3")
    for file in properties["Files"]:
        source = {"Bucket": file["FromBucket"], "Key": file["FromKey"]}
        s3.copy_object(Bucket=properties["Bucket"], Key=file["ToKey"], CopySource=source)
        log.info("copied %s", file["ToKey"])
    return {}


def find_brokers(properties: Properties) -> dict[str, str]:
    """`Brokers`: where clients find the cluster `ClusterArn` by IAM, as `host:port`s."""
    found = boto3.client("kafka").get_bootstrap_brokers(ClusterArn=properties["ClusterArn"])
    return {"Brokers": found["BootstrapBrokerStringSaslIam"]}


def find_zone(properties: Properties) -> dict[str, str]:
    """Return `AvailabilityZone`, the name of the zone of the subnet `SubnetId`."""
    [subnet] = boto3.client("ec2").describe_subnets(SubnetIds=[properties["SubnetId"]])["Subnets"]
    return {"AvailabilityZone": subnet["AvailabilityZone"]}


def await_tables(properties: Properties) -> dict[str, str]:
    """Wait until the catalog has every one of `Tables` in `Database`: the stream makes them.

    `Columns`, by table, are waited for, too. TimeoutError, which names what is missing, after a
    quarter of an hour less what an answer takes.
    """
    glue, database = boto3.client("glue"), properties["Database"]
    deadline = time.monotonic() + _WAIT_S
    wanted = {table: properties.get("Columns", {}).get(table, []) for table in properties["Tables"]}
    while True:
        missing = list(_missing(glue, database, wanted))
        if not missing:
            return {}
        if time.monotonic() > deadline:
            listed = ", ".join(missing)
            raise TimeoutError(f"{database} has no {listed} yet; deploy again when the stream runs")
        time.sleep(_POLL_S)


def _missing(glue: Any, database: str, wanted: Mapping[str, list[str]]) -> Iterator[str]:
    """What the catalog lacks: `table`, or `table.column`."""
    for table, columns in wanted.items():
        try:
            found = glue.get_table(DatabaseName=database, Name=table)["Table"]
        except glue.exceptions.EntityNotFoundException:
            yield table
            continue
        known = {c["Name"] for c in found.get("StorageDescriptor", {}).get("Columns", ())}
        yield from (f"{table}.{column}" for column in columns if column not in known)


ACTIONS: dict[str, Callable[[Properties], dict[str, str]]] = {
    "Custom::CdclakeFiles": copy_files,
    "Custom::CdclakeBrokers": find_brokers,
    "Custom::CdclakeTables": await_tables,
    "Custom::CdclakeZone": find_zone,
}


def handler(event: dict[str, Any], context: Any) -> None:
    """What CloudFormation calls; every way out ends with an answer, else it would wait an hour.

    The physical id never changes, so nothing is ever replaced.
    """
    physical_id = event.get("PhysicalResourceId", event["LogicalResourceId"])
    try:
        data: dict[str, str] = {}
        if event["RequestType"] != "Delete":
            data = ACTIONS[event["ResourceType"]](event["ResourceProperties"])
    except Exception as error:
        log.exception("%s failed", event["ResourceType"])
        why = f"{type(error).__name__}: {error}"
        answer_failure(event, physical_id, why, log_stream=context.log_stream_name)
    else:
        answer(event, physical_id, {"Status": "SUCCESS", "Data": data})
