"""The quantities of what is paid for while nothing happens are those of the templates."""

from __future__ import annotations

import re

from scripts.stacks_diagram import PAGE


def listed() -> dict[str, tuple[str, str]]:
    """By meter how many of what the page says."""
    text = PAGE.read_text().split("## What it costs to leave running")[1].split("\n\n")[2]
    rows = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    return {meter: (count, unit) for meter, count, unit in rows[1:]}


def test_the_quantities_are_those_of_a_file_that_gives_no_sizes(created):
    kafka, database = created.only("AWS::MSK::Cluster"), created.only("AWS::RDS::DBInstance")
    brokers, group = kafka["NumberOfBrokerNodes"], kafka["BrokerNodeGroupInfo"]
    disk = group["StorageInfo"]["EBSStorageInfo"]["VolumeSize"]
    connector = created.only("AWS::KafkaConnect::Connector")["Capacity"]["ProvisionedCapacity"]
    [stream] = [
        job["Properties"]
        for job in created.resources("AWS::Glue::Job")
        if job["Properties"]["Name"] == "shop-stream_changes"
    ]
    zones = [
        len(endpoint["Properties"]["SubnetIds"])
        for endpoint in created.resources("AWS::EC2::VPCEndpoint")
        if endpoint["Properties"]["VpcEndpointType"] == "Interface"
    ]
    assert (database["MultiAZ"], database["ManageMasterUserPassword"]) == (True, True)
    assert (stream["WorkerType"], database["StorageType"]) == ("G.1X", "gp3")
    secrets = len(created.resources("AWS::SecretsManager::Secret")) + 1  # the administrator's
    alarms, boards = (created.resources(f"AWS::CloudWatch::{k}") for k in ("Alarm", "Dashboard"))
    said = {meter: count for meter, (count, _) in listed().items()}
    assert said == {
        "MSK brokers": f"{brokers}",
        "MSK storage": f"{brokers * disk}",
        "RDS for PostgreSQL, Multi-AZ": "1",
        "RDS storage, Multi-AZ": f"{database['AllocatedStorage']}",
        "MSK Connect": f"{connector['McuCount'] * connector['WorkerCount']}",
        "Glue, the stream": f"at most {stream['NumberOfWorkers']}",
        "interface endpoints": f"{sum(zones)}",
        "KMS": f"{len(created.resources('AWS::KMS::Key'))}",
        "Secrets Manager": f"{secrets}",
        "CloudWatch": f"{len(alarms)} and {len(boards)}",
    }
    assert group["InstanceType"] in listed()["MSK brokers"][1]
    assert database["DBInstanceClass"] in listed()["RDS for PostgreSQL, Multi-AZ"][1]


def test_what_firehose_and_web_servers_add_is_said(variants):
    """Of each variant what it has beyond one without them."""
    text = PAGE.read_text().split("## What it costs to leave running")[1]

    def alarms(name: str) -> int:
        return len(variants[name].resources("AWS::CloudWatch::Alarm"))

    assert alarms("delivered") - alarms("created") == 6 + len(["apply-failed"])
    assert "add six alarms for up to nine streams, and `apply-failed`" in text
    web = variants["web logs"]
    task, service = web.only("AWS::ECS::TaskDefinition"), web.only("AWS::ECS::Service")
    assert (task["Cpu"], task["Memory"], service["DesiredCount"]) == ("256", "512", 2)
    assert "two Fargate tasks of 0.25 vCPU and 0.5 GB by the second, three endpoints" in text
