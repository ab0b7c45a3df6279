"""A web server's stack: who runs, who may what, where its requests go."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cdclake.config.problems import InvalidPipeline
from cdclake.web_logs import fluent_bit, nginx
from cdclake.web_logs.model import IMAGES
from cdclake.web_logs.row import COLUMNS
from tests.synth.deployments import EXISTING, PIPELINE, WEB_LOGS, Deploy, Synthesized
from tests.synth.permissions import allows, rendered, role_of
from tests.synth.upgrades import changes

STREAM, ALARM = "AWS::KinesisFirehose::DeliveryStream", "AWS::CloudWatch::Alarm"
HERE = "eu-west-1:111122223333"
STATE, KEY = "arn:aws:s3:::state", f"arn:aws:kms:{HERE}:key/own"
PUBLIC = WEB_LOGS.replace("111122223333.dkr.ecr.eu-west-1.amazonaws.com", "public.ecr.aws/nginx")


def containers(deployed: Synthesized) -> dict[str, dict[str, Any]]:
    listed = deployed.only("AWS::ECS::TaskDefinition")["ContainerDefinitions"]
    return {each["Name"]: each for each in listed}


def endpoints(deployed: Synthesized) -> set[str]:
    found = [
        each["Properties"]["ServiceName"] for each in deployed.resources("AWS::EC2::VPCEndpoint")
    ]
    return {name["Fn::Join"][1][-1].lstrip(".") for name in found}


def test_web_logs_alone_need_neither_a_database_nor_kafka(variants) -> None:
    deployed = variants["web logs"]
    assert set(deployed.templates) == {
        f"shop-{part}" for part in (
            "lake", "network", "observability", "query", "queries-puts", "redrive-puts",
            "weblogs-request",
        )
    }  # fmt: skip
    assert endpoints(deployed) == {"s3", "ecr.api", "ecr.dkr", "logs", "kinesis-firehose"}


def test_beside_tables_web_logs_add_a_stack_and_touch_no_other_part(deploy: Deploy) -> None:
    beside = PIPELINE + WEB_LOGS.partition("name: shop\n")[2]
    found = changes(deploy(PIPELINE), deploy(beside))
    stacks = {name.split("/")[0] for name in found.added}
    assert stacks == {
        "shop-weblogs-request", "shop-network", "shop-observability", "shop-queries-puts",
        "shop-redrive-puts",
    }  # fmt: skip
    assert not (found.removed or found.replaced)


def test_nginx_logs_in_the_format_that_the_parser_reads(variants) -> None:
    server = containers(variants["web logs"])[fluent_bit.CONTAINER]
    [told] = server["Environment"]
    assert told == {"Name": nginx.TEXT, "Value": nginx.configuration()}
    assert "access_log /dev/stdout combined;" in told["Value"]
    assert [each["ContainerPath"] for each in server["MountPoints"]] == [nginx.SCRATCH]


@pytest.mark.parametrize("name", ["web logs", "shards"])
def test_the_router_sends_where_the_stream_reads(variants, name: str) -> None:
    deployed = variants[name]
    log = containers(deployed)[fluent_bit.CONTAINER]["LogConfiguration"]
    assert log["LogDriver"] == "awsfirelens"
    [stream] = [each["Properties"] for each in deployed.resources(STREAM)]
    if name == "shards":
        assert log["Options"]["stream"] == deployed.only("AWS::Kinesis::Stream")["Name"]
        assert "KinesisStreamSourceConfiguration" in stream
    else:
        assert log["Options"]["delivery_stream"] == stream["DeliveryStreamName"]


def test_the_routers_files_are_those_that_local_tests_read(variants) -> None:
    deployed = variants["web logs"]
    texts = [path.read_text() for path in deployed.folder.glob("asset.*.conf")]
    assert sorted(texts) == sorted([fluent_bit.parsers(), fluent_bit.filters()])
    router = containers(deployed)["router"]
    assert router["StopTimeout"] > fluent_bit.GRACE_S
    given = router["Environment"]
    assert [each["Name"] for each in given] == [f"aws_fluent_bit_init_s3_{n}" for n in (1, 2)]
    assert all("deployed/" in json.dumps(each["Value"]) for each in given)


def test_tables_have_the_rows_columns_and_a_partition_for_each_day(variants) -> None:
    made = {
        each["Properties"]["Name"]: each["Properties"]["OpenTableFormatInput"]["IcebergInput"]
        for each in variants["web logs"].resources("AWS::Glue::Table")
    }
    assert made.keys() == {"request_200", "request_404", "request_other"}
    for table in made.values():
        described = table["IcebergTableInput"]
        fields = described["Schema"]["Fields"]
        assert [each["Name"] for each in fields] == [name for name, _ in COLUMNS]
        assert len({each["Id"] for each in fields}) == len(fields)
        [day] = described["PartitionSpec"]["Fields"]
        assert day["Transform"] == "day"
        assert fields[day["SourceId"] - 1]["Name"] == "time_local"


def test_rows_go_by_the_query_or_to_the_only_table(variants) -> None:
    def processors(name: str) -> list[str]:
        [stream] = [each["Properties"] for each in variants[name].resources(STREAM)]
        into = stream["IcebergDestinationConfiguration"]
        return [each["Type"] for each in into["ProcessingConfiguration"]["Processors"]]

    assert processors("web logs") == ["Lambda", "MetadataExtraction"]
    assert processors("shards") == ["Lambda"]
    [only] = variants["shards"].resources("AWS::Glue::Table")
    assert only["Properties"]["Name"] == "request"


def test_a_task_may_send_its_requests_and_read_its_files_only(variants) -> None:
    task = role_of(variants["web logs"], "ServerTask")
    own = f"arn:aws:firehose:{HERE}:deliverystream/shop-request"
    assert allows(task, "firehose:PutRecordBatch", own)
    assert not allows(task, "firehose:PutRecordBatch", f"{own}-another")
    assert not allows(task, "firehose:DeleteDeliveryStream", own)
    assert not allows(task, "s3:GetObject", f"{STATE}/control/stream.json")
    assert not allows(task, "s3:PutObject", f"{STATE}/deployed/parsers-0a.conf")
    execution = role_of(variants["web logs"], "ServerExecution")
    assert allows(execution, "ecr:BatchGetImage", f"arn:aws:ecr:{HERE}:repository/nginx")
    assert not allows(execution, "ecr:BatchGetImage", f"arn:aws:ecr:{HERE}:repository/another")
    assert not allows(execution, "ecr:PutImage", f"arn:aws:ecr:{HERE}:repository/nginx")


def test_a_stream_appends_to_its_own_tables_only(variants) -> None:
    role = role_of(variants["web logs"], "Requests")
    table = f"arn:aws:glue:{HERE}:table/cdc_iceberg"
    assert allows(role, "glue:UpdateTable", f"{table}/request_200")
    assert not allows(role, "glue:UpdateTable", f"{table}/orders_changes")
    reading = role_of(variants["shards"], "Requests")
    shards = "ShardsArn"
    assert not allows(role, "kinesis:GetRecords", shards)
    decrypts = ("kms:Decrypt", KEY)
    assert allows(reading, *decrypts, ViaService="kinesis.eu-west-1.amazonaws.com")
    assert not allows(role, *decrypts, ViaService="kinesis.eu-west-1.amazonaws.com")


def test_an_image_that_a_closed_network_does_not_lead_to_is_refused(deploy: Deploy) -> None:
    with pytest.raises(InvalidPipeline, match=r"no route to the registry public[.]ecr[.]aws; copy"):
        deploy(PUBLIC)


def test_images_to_build_are_assets_and_synth_needs_no_docker(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CDK_DOCKER", str(tmp_path / "no-docker"))
    text = WEB_LOGS.partition("    images:")[0]
    deployed = deploy(f"{text}    images: build\n")
    published = json.loads((deployed.folder / "shop-weblogs-request.assets.json").read_text())
    built = {
        Path(image["source"]["directory"]).name: image
        for image in published["dockerImages"].values()
    }
    assert len(built) == 2
    folders = {(deployed.folder / name / "Dockerfile").read_text(): name for name in built}
    for name, container in (("nginx", "nginx"), ("router", "router")):
        folder = folders[(IMAGES / name / "Dockerfile").read_text()]
        assert built[folder]["source"]["platform"] == "linux/amd64"
        [destination] = built[folder]["destinations"].values()
        image = rendered(containers(deployed)[container]["Image"])
        to = {"Fn::Sub": "/{repositoryName}:{imageTag}".format(**destination)}
        assert image == f"111122223333.dkr.ecr.eu-west-1.amazonaws.com{rendered(to)}"
    execution = role_of(deployed, "ServerExecution")
    own = f"arn:aws:ecr:{HERE}:repository/cdk-hnb659fds-container-assets-111122223333-eu-west-1"
    assert allows(execution, "ecr:BatchGetImage", own)
    assert not allows(execution, "ecr:BatchGetImage", f"{own}-another")
    assert not allows(execution, "ecr:PutImage", own)


def test_base_images_are_pinned() -> None:
    from_nginx, from_router = (
        re.findall(r"^FROM (.+)$", (IMAGES / name / "Dockerfile").read_text(), re.MULTILINE)
        for name in ("nginx", "router")
    )
    assert re.fullmatch(r"docker[.]io/library/nginx:[\d.]+@sha256:[0-9a-f]{64}", *from_nginx)
    assert re.fullmatch(r".+/aws-for-fluent-bit:init-\d+[.]\d+[.]\d+(@sha256:.{64})?", *from_router)


def test_a_network_of_ones_own_may_lead_anywhere(deploy: Deploy) -> None:
    network = EXISTING.partition("  source:")[0]
    deployed = deploy(PUBLIC + network)
    owner = deployed.templates["shop-network"]["Outputs"]
    assert "ecr.dkr" in owner["NetworkOwner"]["Value"]
    assert "No client can reach the web servers" in str(owner["WebServerOwner"]["Value"])
    execution = role_of(deployed, "ServerExecution")
    assert not allows(execution, "ecr:GetAuthorizationToken", "*")


def test_nobody_is_let_into_a_web_server(variants) -> None:
    rules = variants["web logs"].resources("AWS::EC2::SecurityGroupIngress")
    [group] = [
        logical
        for logical, each in variants["web logs"].templates["shop-network"]["Resources"].items()
        if each["Type"] == "AWS::EC2::SecurityGroup" and logical.startswith("Web")
    ]
    assert [
        r for r in rules if r["Properties"]["GroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
    ] == []


def test_a_web_server_is_watched(variants) -> None:
    def names(variant: str) -> set[str]:
        found = variants[variant].resources(ALARM)
        return {each["Properties"]["AlarmName"].removeprefix("shop-") for each in found}

    of_streams = {
        "delivery-late", "delivery-failed", "delivery-calls", "delivery-refused",
        "delivery-function",
    }  # fmt: skip
    assert names("web logs") == of_streams | {"web-server", "web-throttled"}
    assert names("shards") == of_streams | {"web-server", "web-throttled", "kinesis-lag"}


@pytest.mark.parametrize(
    ("variant", "metric", "dimension"),
    [
        ("web logs", ("AWS/Firehose", "ThrottledRecords"), "DeliveryStreamName"),
        ("shards", ("AWS/Kinesis", "WriteProvisionedThroughputExceeded"), "StreamName"),
    ],
)
def test_a_throttled_web_server_is_an_alarm(
    variants, variant: str, metric: tuple[str, str], dimension: str
) -> None:
    """Its router has the requests in memory only."""
    [alarm] = [
        each["Properties"]
        for each in variants[variant].resources(ALARM)
        if each["Properties"]["AlarmName"] == "shop-web-throttled"
    ]
    assert metric[0].removeprefix("AWS/") in alarm["AlarmDescription"]
    [watched] = [each["MetricStat"]["Metric"] for each in alarm["Metrics"]]
    assert (watched["Namespace"], watched["MetricName"]) == metric
    assert watched["Dimensions"] == [{"Name": dimension, "Value": "shop-request"}]
