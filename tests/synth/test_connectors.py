"""Sinks of `connectors:` on MSK Connect: settings, plugin, rights, log and alarm."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack, aws_ec2

from cdclake import zip_files
from cdclake.config.deployment import load_deployment
from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import read_document
from cdclake.connectors.declared import DeclaredConnector
from cdclake.deployed.deployed_logs import log_groups
from cdclake.errors import InputError
from cdclake.stacks.bundles import build_connector_plugin
from cdclake.stacks.pipeline_app import add_stacks
from tests.source_tree import PROJECT
from tests.synth.deployments import (
    CONNECTED,
    EXISTING,
    FLAGS,
    OPTIMIZED,
    PIPELINE,
    Deploy,
    Synthesized,
    read_assembly,
)
from tests.synth.roles import allowances
from tests.synth.rules import broken_rules

CONNECTOR = "AWS::KafkaConnect::Connector"
CLUSTER = "all/0a1b2c3d-0a1b-1"


def connectors(deployed: Synthesized) -> dict[str, dict[str, Any]]:
    """The connectors' properties by name."""
    found = [each["Properties"] for each in deployed.resources(CONNECTOR)]
    return {each["ConnectorName"]: each for each in found}


def allowed(deployed: Synthesized, name: str) -> dict[str, set[str]]:
    return allowances(deployed, "kafkaconnect.amazonaws.com", named=name)


@pytest.mark.synth
def test_an_own_stack_lets_connectors_reach_a_target(tmp_path: Path) -> None:
    """Run the code that docs/connectors.md shows."""
    page = (PROJECT / "docs" / "connectors.md").read_text()
    [code] = re.findall(r"```python\n(aws_ec2.*?)```", page, re.S)
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE)
    app = App(context=FLAGS, outdir=str(tmp_path / "out"), analytics_reporting=False)
    lake = add_stacks(app, load_deployment(file))
    own = Stack(app, "shop-own", env=lake.env)
    exec(code, {"aws_ec2": aws_ec2, "lake": lake, "self": own})
    app.synth()
    template = read_assembly(tmp_path / "out").templates["shop-own"]
    [rule] = [each["Properties"] for each in template["Resources"].values()]
    assert (rule["CidrIp"], rule["FromPort"], rule["ToPort"]) == ("10.1.0.0/16", 5432, 5432)
    assert "ConnectGroup" in rule["GroupId"]["Fn::ImportValue"]


@pytest.fixture(scope="session")
def connected(variants: dict[str, Synthesized]) -> Synthesized:
    return variants["connectors"]


def test_each_entry_is_a_connector_of_its_size(connected: Synthesized) -> None:
    found = connectors(connected)
    sizes = {n: c["Capacity"]["ProvisionedCapacity"]["McuCount"] for n, c in found.items()}
    assert sizes == {"shop-source": 1, "shop-lake": 1, "shop-copy": 2}
    assert found["shop-copy"]["ConnectorConfiguration"] == {
        "connector.class": "io.example.CopySink",
        "tasks.max": "1",
        "topics": "shop.public.orders,shop.public.visits",
        "connection.password": "${secretsmanager:shop/copy:password}",
    }


def test_the_sink_uses_the_services_of_aws_and_signs_in_by_iam(connected: Synthesized) -> None:
    settings = connectors(connected)["shop-lake"]["ConnectorConfiguration"]
    assert not [name for name in settings if "endpoint" in name]
    assert settings["iceberg.kafka.sasl.mechanism"] == "AWS_MSK_IAM"
    assert (
        settings["iceberg.kafka.bootstrap.servers"]
        == (
            connectors(connected)["shop-lake"]["KafkaCluster"]["ApacheKafkaCluster"][
                "BootstrapServers"
            ]
        )
    )
    topics = {each["Properties"]["TopicName"] for each in connected.resources("AWS::MSK::Topic")}
    assert settings["iceberg.control.topic"] in topics


def test_a_worker_without_references_has_no_provider(connected: Synthesized) -> None:
    texts = {
        each["Properties"]["Name"].rpartition("-")[0]: str(each["Properties"])
        for each in connected.resources("AWS::KafkaConnect::WorkerConfiguration")
    }
    assert "config.providers=" not in texts["shop-lake"]
    assert "config.providers=" in texts["shop-copy"]


def test_the_sinks_role_appends_to_its_table_and_reads_its_topic(connected: Synthesized) -> None:
    found, topics = allowed(connected, "Sinklake"), f"kafka:R:A:topic/{CLUSTER}"
    own = {
        f"{topics}/__amazon_msk_connect_*_shop-lake_*",
        f"{topics}/__msk_connect_*_shop-lake_*",
    }
    control = f"{topics}/__cdclake-control.shop.lake"
    assert found["kafka-cluster:ReadData"] == {f"{topics}/shop.public.orders", control, *own}
    assert found["kafka-cluster:WriteData"] == {control, *own}
    assert found["kafka-cluster:AlterTransactionalId"] == {
        f"kafka:R:A:transactional-id/{CLUSTER}/shop-lake-*"
    }
    tables = {name for name in found["glue:UpdateTable"] if ":table/" in name}
    assert tables == {"glue:R:A:table/cdc_iceberg/orders_sink"}
    [files] = found["s3:PutObject"]
    assert files.endswith("/cdc_iceberg.db/orders_sink/*")
    assert not [action for action in found if action.startswith("secretsmanager")]


def test_another_connectors_role_reads_its_topics_and_its_secret(connected: Synthesized) -> None:
    found, topics = allowed(connected, "Sinkcopy"), f"kafka:R:A:topic/{CLUSTER}"
    assert {t for t in found["kafka-cluster:ReadData"] if "msk_connect" not in t} == {
        f"{topics}/shop.public.orders",
        f"{topics}/shop.public.visits",
    }
    assert found["secretsmanager:GetSecretValue"] == {"secretsmanager:R:A:secret:shop/copy-??????"}
    services = {action.partition(":")[0] for action in found}
    assert services == {"kafka-cluster", "kms", "secretsmanager"}


def test_each_has_a_log_and_an_alarm(connected: Synthesized, tmp_path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE + OPTIMIZED + EXISTING + CONNECTED)
    deployment = load_deployment(tmp_path / "shop.yaml")
    groups = log_groups(deployment)
    logs = connected.resources("AWS::Logs::LogGroup")
    made = {each["Properties"].get("LogGroupName") for each in logs}
    for name in ("connector-lake", "connector-copy"):
        assert groups[name] == [f"/aws/vendedlogs/shop/{name}"]
        assert set(groups[name]) <= made
    alarms = {
        each["Properties"]["AlarmName"]: str(each["Properties"]["Metrics"])
        for each in connected.resources("AWS::CloudWatch::Alarm")
    }
    assert "shop-lake" in alarms["shop-declared-connector"]
    assert "shop-copy" in alarms["shop-declared-connector-2"]


def test_the_provider_is_in_a_plugin_with_references_only(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "built")
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "sink.jar").write_bytes(b"one")

    def names(**settings: str) -> list[str]:
        connector = DeclaredConnector(
            name="out",
            plugin=str(tmp_path / "plugin"),
            connector_class="io.example.Out",
            tables=("orders",),
            settings=settings,
        )
        with zipfile.ZipFile(build_connector_plugin(connector).path) as archive:
            return archive.namelist()

    assert names() == ["sink.jar"]
    found = names(a="${secretsmanager:shop/out:password}")
    assert {"sink.jar", "secrets/cdclake-connect.jar"} <= set(found)


def test_the_iceberg_sink_has_cdclakes_transform(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "built")
    sink = DeclaredConnector(
        name="lake", plugin="iceberg-sink", connector_class="x", tables=("orders",)
    )
    with zipfile.ZipFile(build_connector_plugin(sink).path) as archive:
        assert {"cdclake-sink.jar", "iceberg-kafka-connect-1.10.1.jar"} <= set(archive.namelist())
        with zipfile.ZipFile(BytesIO(archive.read("cdclake-sink.jar"))) as jar:
            assert "cdclake/connect/DeletedKeys.class" in jar.namelist()


def test_without_the_plugin_synth_names_the_command(tmp_path) -> None:
    sink = DeclaredConnector(
        name="lake", plugin="iceberg-sink", connector_class="x", tables=("orders",)
    )
    with pytest.raises(InputError, match="run `make connectors`"):
        build_connector_plugin(sink, jars=tmp_path)
    missing = DeclaredConnector(
        name="out", plugin=str(tmp_path / "no.zip"), connector_class="x", tables=("orders",)
    )
    with pytest.raises(InputError, match="neither a folder with jars nor a zip"):
        build_connector_plugin(missing)


def wide_file(
    tables: int, *, sinks: str = "  lake: {plugin: iceberg-sink, tables: [ALL]}\n"
) -> str:
    """A file with as many tables; each sink reads all of them."""
    names = [f"public.table_with_a_long_name_{number:03}" for number in range(tables)]
    declared = "".join(f"  {name}:\n    key: [id]\n    columns: {{id: bigint}}\n" for name in names)
    listed = ", ".join(["public.orders", *names])
    return f"{PIPELINE}{declared}{EXISTING}connectors:\n{sinks.replace('ALL', listed)}"


@pytest.mark.synth
def test_a_sink_of_a_hundred_tables_fits_its_role(deploy: Deploy) -> None:
    deployed = deploy(wide_file(100))
    assert broken_rules(deployed.templates) == []
    found, topics = allowed(deployed, "Sinklake"), f"kafka:R:A:topic/{CLUSTER}"
    assert f"{topics}/shop.*" in found["kafka-cluster:ReadData"]
    tables = {name for name in found["glue:UpdateTable"] if ":table/" in name}
    assert tables == {"glue:R:A:table/cdc_iceberg/*_sink"}


@pytest.mark.synth
def test_the_longest_list_of_names_fits_its_role(deploy: Deploy, tmp_path) -> None:
    """Neither sink has a pattern: the other has tables and reads a topic of its own."""
    sinks = (
        "  lake: {plugin: iceberg-sink, tables: [ALL]}\n"
        "  other: {plugin: iceberg-sink, tables: [public.visits]}\n"
    )

    def is_accepted(tables: int) -> bool:
        (tmp_path / "shop.yaml").write_text(file(tables))
        return find_problems(read_document(tmp_path / "shop.yaml")) == []

    def file(tables: int) -> str:
        text = wide_file(tables, sinks=sinks)
        return text.replace("tables:\n", f"tables:\n{OPTIMIZED}", 1)

    most = max(tables for tables in range(1, 30) if is_accepted(tables))
    assert most >= 10 and not is_accepted(most + 1)
    broken = broken_rules(deploy(file(most)).templates)
    assert [line for line in broken if line.startswith("roles_fit_iam")] == []
