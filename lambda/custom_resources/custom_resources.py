"""Custom resources for deployment steps that CloudFormation has no resource for.

Every action is idempotent. A deletion does nothing: the copied files are deleted with their bucket.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3

from cdclake.cloudformation import answer, answer_failure, repeat_denied

log = logging.getLogger()
log.setLevel(logging.INFO)

COLUMNS = Path(__file__).with_name("columns.json")  # only in the zip of a resource with columns
_WAIT_S, _POLL_S = 840.0, 10.0  # from the call's start; below Lambda's limit of 900 s

Properties = Mapping[str, Any]
Action = Callable[[Properties, float], dict[str, str]]  # with the deadline for waiting


def copy_files(properties: Properties, _deadline: float) -> dict[str, str]:
    """Copy files that `cdk deploy` uploaded into the deployment's bucket.

    Properties: `Bucket`, and `Files`, each with `FromBucket`, `FromKey`, `ToKey`. The bucket's
    default encryption applies. Files are named by their content, so copying again changes nothing.
    """
    s3 = boto3.client("s3")
    for file in properties["Files"]:
        source = {"Bucket": file["FromBucket"], "Key": file["FromKey"]}
        s3.copy_object(Bucket=properties["Bucket"], Key=file["ToKey"], CopySource=source)
        log.info("copied %s", file["ToKey"])
    return {}


def find_brokers(properties: Properties, _deadline: float) -> dict[str, str]:
    """Return `Brokers`, the IAM bootstrap addresses of the cluster `ClusterArn`."""
    cluster = properties["ClusterArn"]
    found = boto3.client("kafka").get_bootstrap_brokers(ClusterArn=cluster)
    brokers = found.get("BootstrapBrokerStringSaslIam")
    if not brokers:
        raise LookupError(
            f"{cluster} has no brokers for IAM access; enable it, as the output KafkaOwner asks"
        )
    return {"Brokers": brokers}


def find_zone(properties: Properties, _deadline: float) -> dict[str, str]:
    """Return `AvailabilityZone`, the name of the zone of the subnet `SubnetId`."""
    [subnet] = boto3.client("ec2").describe_subnets(SubnetIds=[properties["SubnetId"]])["Subnets"]
    return {"AvailabilityZone": subnet["AvailabilityZone"]}


def await_tables(properties: Properties, deadline: float) -> dict[str, str]:
    """Wait until the catalog has all `Tables` in `Database`, which jobs create.

    With `ColumnsDigest` also wait for the columns of each table that columns.json lists, which is
    stored next to this file. `Job` is the job of a stream that runs by schedule: as long as
    something of it is missing, it is started when no run is active. A run that finds no record
    creates nothing, and the connector may have yet to write its first one. `PollJob` creates the
    tables in `Polled`, each with the polled table's name. It is started once: its run creates
    them first, and others of it may run at the same time. Raise TimeoutError, which lists what is
    missing, at the deadline.
    """
    glue, database = boto3.client("glue"), properties["Database"]
    polled, is_polling = properties.get("Polled", {}), False
    columns = _wanted_columns(properties)
    wanted = {table: columns.get(table, []) for table in properties["Tables"]}
    while True:
        missing = list(_missing(glue, database, wanted))
        if not missing:
            return {}
        if time.monotonic() > deadline:
            listed, late = ", ".join(missing), set(missing) - polled.keys()
            by = "the stream" if late else properties["PollJob"]
            raise TimeoutError(f"{database} has no {listed} yet; deploy again when {by} runs")
        if "Job" in properties and not polled.keys() >= set(missing):
            _start(glue, properties["Job"])
        tables = sorted({polled[name] for name in missing if name in polled})
        if tables and not is_polling:
            is_polling = _start(glue, properties["PollJob"], {"--tables": ",".join(tables)})
        time.sleep(_POLL_S)


def _wanted_columns(properties: Properties) -> Mapping[str, list[str]]:
    if "ColumnsDigest" in properties:
        columns: dict[str, list[str]] = json.loads(COLUMNS.read_text(encoding="utf-8"))
        return columns
    # CloudFormation repeats the properties of an older deployment if it rolls back to it.
    older: dict[str, list[str]] = properties.get("Columns", {})
    return older


def _start(glue: Any, job: str, arguments: Mapping[str, str] | None = None) -> bool:
    """Start a run of the job; return False if too many runs are active, maybe of an older plan.

    They are those of the job, or of all jobs: the account has a quota.
    """
    refused = glue.exceptions
    try:
        run = glue.start_job_run(JobName=job, Arguments=arguments or {})["JobRunId"]
    except refused.ConcurrentRunsExceededException:
        return False
    except refused.ResourceNumberLimitExceededException as error:
        log.warning("%s is not started yet: %s", job, error)
        return False
    log.info("started %s: %s", job, run)
    return True


def _missing(glue: Any, database: str, wanted: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield what the catalog lacks, as `table` or `table.column`."""
    for table, columns in wanted.items():
        try:
            found = glue.get_table(DatabaseName=database, Name=table)["Table"]
        except glue.exceptions.EntityNotFoundException:
            yield table
            continue
        known = {c["Name"] for c in found.get("StorageDescriptor", {}).get("Columns", ())}
        yield from (f"{table}.{column}" for column in columns if column not in known)


ACTIONS: dict[str, Action] = {
    "Custom::CdclakeFiles": copy_files,
    "Custom::CdclakeBrokers": find_brokers,
    "Custom::CdclakeTables": await_tables,
    "Custom::CdclakeZone": find_zone,
}


def handler(event: dict[str, Any], context: Any) -> None:
    """Handle a request of CloudFormation and always answer: it waits for its timeout otherwise.

    The physical id never changes, so nothing is ever replaced. Waiting ends 14 minutes after the
    call's start, also if a denial repeats the action: Lambda's 15, less the time for the answer.
    """
    deadline = time.monotonic() + _WAIT_S
    physical_id = event.get("PhysicalResourceId", event["LogicalResourceId"])
    try:
        data: dict[str, str] = {}
        if event["RequestType"] != "Delete":
            action = ACTIONS[event["ResourceType"]]
            data = repeat_denied(lambda: action(event["ResourceProperties"], deadline))
    except Exception as error:
        log.exception("%s failed", event["ResourceType"])
        why = f"{type(error).__name__}: {error}"
        answer_failure(event, physical_id, why, log_stream=context.log_stream_name)
    else:
        answer(event, physical_id, {"Status": "SUCCESS", "Data": data})
