"""The connector on MSK Connect: told as the local one, and never replaced in one step."""

from __future__ import annotations

import re

import boto3
import pytest
from botocore.validate import validate_parameters

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.config.problems import InvalidPipeline
from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.debezium.worker import OWN_PROVIDER, password_of, worker_settings
from cdclake.deployed.connector_probe import create_request
from cdclake.errors import InputError
from cdclake.stacks import bundles
from tests.source_tree import PROJECT
from tests.synth.deployments import LARGER, OFF, PIPELINE, WIDER, Synthesized, synthesize
from tests.synth.permissions import IMPORTED, allows, role_of
from tests.synth.roles import allowances
from tests.synth.rules import broken_rules
from tests.synth.upgrades import changes

CONNECTOR = "AWS::KafkaConnect::Connector"
WORKER = "AWS::KafkaConnect::WorkerConfiguration"
PLUGIN = "AWS::KafkaConnect::CustomPlugin"
READS_SECRET = "secretsmanager:GetSecretValue"
PER_PLACE = {"database.hostname", "database.port", "database.sslmode", "database.sslfactory"}


def test_page_of_own_workers_lists_the_rights_of_the_connector(
    variants: dict[str, Synthesized],
) -> None:
    """With a salt and Glue's registry, so that no right is missing."""
    page = (PROJECT / "docs" / "how-to" / "own-connect-worker.md").read_text()
    _, _, rights = page.partition("## Rights of the worker")
    found = allowances(variants["governed"], "kafkaconnect.amazonaws.com", named="Connector")
    assert set(re.findall(r"`([a-z-]+:[A-Z]\w+)`", rights)) == found.keys()
    assert naming.offsets_topic("<name>") in rights and naming.heartbeat_topic("<name>") in rights


def made_of(deployed: Synthesized) -> str:
    """What the deployment prints of the connector that it makes."""
    return str(deployed.templates["shop-cdc"]["Outputs"]["ConnectorMadeOf"]["Value"])


def worker_text(deployed: Synthesized) -> str:
    """The worker's settings in a region called `here`."""
    content = deployed.only(WORKER)["PropertiesFileContent"]["Fn::Base64"]
    separator, parts = content["Fn::Join"]
    return str(separator).join("here" if isinstance(part, dict) else part for part in parts)


@pytest.fixture
def other_jars(tmp_path, monkeypatch) -> None:
    """As after a change of a version in pom.xml."""
    for profile in ("debezium", "secrets"):
        (tmp_path / "jars" / profile).mkdir(parents=True)
        (tmp_path / "jars" / profile / f"{profile}-newer.jar").write_bytes(b"newer")
    monkeypatch.setitem(bundles.build_plugin.__kwdefaults__, "jars", tmp_path / "jars")
    monkeypatch.setattr(bundles, "unlocked_jars", lambda *_: ())  # jars.lock has them as well


def test_it_is_told_the_same_as_locally_but_for_the_place(created, tmp_path):
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    plan = load_deployment(tmp_path / "pipeline.yaml").plan
    local = SourceAddress(
        host="127.0.0.1",
        port=15432,
        database="shop",
        user=plan.source_object,
        password=password_of(naming.login_secret("shop")),
        sslmode="prefer",
    )
    settings = created.only(CONNECTOR)["ConnectorConfiguration"]
    expected = connector_config(plan, local, epoch=1, mask_salt="", max_queue_bytes=256 * 1024**2)
    assert {k: v for k, v in settings.items() if k not in PER_PLACE} == {
        k: v for k, v in expected.items() if k not in PER_PLACE
    }
    assert settings["database.port"] == "5432"
    assert settings["database.sslmode"] == "verify-full"


def test_an_existing_source_and_kafka_are_where_the_file_says(variants):
    properties = variants["existing"].only(CONNECTOR)
    settings = properties["ConnectorConfiguration"]
    assert (settings["database.hostname"], settings["database.port"]) == ("db.example.org", "6432")
    assert properties["KafkaCluster"]["ApacheKafkaCluster"]["Vpc"]["Subnets"] == [
        "subnet-0a1b2c3d",
        "subnet-0d1c2b3a",
    ]


def test_its_worker_is_told_the_same_as_the_local_one_and_keeps_offsets_in_our_topic(created):
    lines = worker_text(created).splitlines()
    expected = worker_settings(OWN_PROVIDER, region="here")
    assert lines == [
        *(f"{key}={value}" for key, value in expected.items()),
        "offset.storage.topic=__cdclake-offsets.shop",
        "config.storage.replication.factor=3",
        "status.storage.replication.factor=3",
    ]


def test_the_worker_is_told_nothing_that_msk_connect_refuses(created):
    """The lists are of MSK's developer guide, "Supported worker configuration properties"."""
    refused = (
        "access.control.", "admin.", "client.", "connect.", "inter.worker.", "internal.",
        "listeners.https.", "metrics.", "rest.", "sasl.", "security.", "socket.", "ssl.",
        "topic.tracking.", "worker.", "producer.", "consumer.",
        "bootstrap.servers", "config.storage.topic", "connections.max.idle.ms",
        "connector.client.config.override.policy", "group.id", "listeners", "metric.reporters",
        "plugin.path", "receive.buffer.bytes", "response.http.headers.config",
        "scheduled.rebalance.max.delay.ms", "send.buffer.bytes", "status.storage.topic",
    )  # fmt: skip
    supported = {
        f"producer.{name}"
        for name in (
            "batch.size", "compression.type", "enable.idempotence", "linger.ms", "max.request.size",
        )
    }  # fmt: skip
    keys = [line.partition("=")[0] for line in worker_text(created).splitlines()]
    assert supported <= set(keys)
    assert [key for key in keys if key.startswith(refused) and key not in supported] == []


def test_the_connector_overrides_no_client_settings(created):
    """MSK Connect documents no `connector.client.config.override.policy`, so none is relied on."""
    settings = created.only(CONNECTOR)["ConnectorConfiguration"]
    assert [key for key in settings if key.startswith(("producer.", "consumer.", "admin."))] == []


@pytest.mark.synth
def test_the_workers_own_topics_fit_a_cluster_of_two_brokers(variants):
    lines = worker_text(variants["small"]).splitlines()
    assert [line for line in lines if ".replication.factor=" in line] == [
        "config.storage.replication.factor=2",
        "status.storage.replication.factor=2",
    ]


@pytest.mark.synth
def test_another_size_changes_no_setting(deploy):
    # MSK Connect's UpdateConnector takes a capacity or a configuration, not both.
    small, large = (
        deploy(PIPELINE + f"aws: {{connect: {{mcus: {mcus}}}}}\n").only(CONNECTOR)
        for mcus in (1, 4)
    )
    assert small["Capacity"] != large["Capacity"]
    assert small["ConnectorConfiguration"] == large["ConnectorConfiguration"]
    settings = small["ConnectorConfiguration"]
    assert settings["max.queue.size.in.bytes"] == str(256 * 1024**2)


def test_aws_s_own_provider_can_take_the_place_of_ours(tmp_path):
    jar = tmp_path / "msk-config-providers.jar"
    jar.write_bytes(b"of AWS")
    deployed = synthesize(PIPELINE + f"aws: {{connect: {{provider_jar: {jar}}}}}\n", tmp_path)
    text = worker_text(deployed)
    assert "class=com.amazonaws.kafka.config.providers.SecretsManagerConfigProvider\n" in text


def test_a_provider_that_is_not_there_ends_synth(tmp_path):
    with pytest.raises(InputError, match=r"[.]yaml:9:31: jar .*/nowhere[.]jar not found; write"):
        synthesize(PIPELINE + "aws: {connect: {provider_jar: nowhere.jar}}\n", tmp_path)


def test_without_the_jars_synth_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setitem(bundles.build_plugin.__kwdefaults__, "jars", tmp_path / "none")
    with pytest.raises(InputError, match=r"no connector jars in .*; run `make plugins`"):
        synthesize(PIPELINE, tmp_path)


def test_other_jars_replace_the_connector_in_two_steps_and_not_in_one(
    created, tmp_path, other_jars
):
    running = made_of(created)
    with pytest.raises(InvalidPipeline) as refused:
        synthesize(PIPELINE + f"aws: {{connect: {{made_of: {running}}}}}\n", tmp_path)
    [problem] = refused.value.problems
    assert (problem.line, problem.column) == (9, 26)
    assert f"replace the running connector (made_of: {running})" in problem.message
    [other] = re.findall(r"`made_of: ([0-9a-f]{12})`", str(refused.value))
    assert other != running
    off = f"{{connector: off, connect: {{made_of: {running}}}}}"
    assert synthesize(PIPELINE + f"aws: {off}\n", tmp_path).resources(CONNECTOR) == []
    on = f"{{connector: on, connect: {{made_of: {other}}}}}"
    found = changes(created, synthesize(PIPELINE + f"aws: {on}\n", tmp_path))
    assert found.kinds(set(found.replaced)) == {PLUGIN}


def test_the_plugin_is_named_by_its_content(created):
    assert re.fullmatch(r"shop-[0-9a-f]{12}", created.only(PLUGIN)["Name"])


@pytest.mark.parametrize("text", [LARGER, WIDER], ids=["sizes", "column"])
@pytest.mark.synth
def test_what_changes_in_place_makes_it_of_the_same(deploy, text):
    assert made_of(deploy(text)) == made_of(deploy(PIPELINE))


def test_another_place_makes_another_connector(created, variants):
    assert made_of(variants["existing"]) != made_of(created)


def test_off_takes_the_connector_away_and_nothing_that_it_needs_to_go_on(created, deploy):
    found = changes(created, deploy(OFF))
    kinds = found.kinds(found.removed)
    assert CONNECTOR in kinds
    assert kinds <= {
        CONNECTOR,
        "AWS::CloudWatch::Alarm",  # that its task runs
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "AWS::Scheduler::Schedule",  # of its keeper
        "Custom::CdclakeBrokers",
    }
    assert found.kinds(set(found.updated)) == {"AWS::CloudWatch::Dashboard"}  # which shows it
    assert not (found.added or found.replaced)


@pytest.mark.synth
def test_environments_have_connectors_of_their_own(tmp_path):
    text = PIPELINE + "environments: {dev: {aws: {protect: false}}}\n"
    deployed = synthesize(text, tmp_path, "dev")
    connector = deployed.only(CONNECTOR)
    assert connector["ConnectorName"] == "shop-dev-source"
    reference = connector["ConnectorConfiguration"]["database.password"]
    assert reference == "${secretsmanager:shop-dev/source:password}"
    secrets = deployed.resources("AWS::SecretsManager::Secret")
    assert {each["Properties"]["Name"] for each in secrets} == {"shop-dev/source", "shop-dev/mask"}


def test_its_role_may_do_what_it_does_and_no_more(variants):
    """On an existing cluster, whose ARN the file tells, every resource is a text."""
    allowed = allowances(variants["existing"], "kafkaconnect.amazonaws.com", named="ConnectorRole")
    topics = "kafka:R:A:topic/all/0a1b2c3d-0a1b-1"
    assert allowed["kafka-cluster:WriteData"] == {
        f"{topics}/shop.*",
        f"{topics}/__debezium-heartbeat.shop",
        f"{topics}/__cdclake-offsets.shop",
        f"{topics}/__amazon_msk_connect_*_shop-source_*",
        f"{topics}/__msk_connect_*_shop-source_*",
    }
    assert allowed["kafka-cluster:WriteDataIdempotently"] == allowed["kafka-cluster:Connect"]
    assert allowed["kafka-cluster:CreateTopic"] == {
        f"{topics}/__amazon_msk_connect_*_shop-source_*",
        f"{topics}/__msk_connect_*_shop-source_*",
    }
    assert f"{topics}/shop.*" not in allowed["kafka-cluster:ReadData"]
    assert {action.partition(":")[0] for action in allowed} == {
        "kafka-cluster",
        "kms",
        "secretsmanager",
    }
    assert len(allowed[READS_SECRET]) == len(allowed["kms:Decrypt"]) == 1


@pytest.mark.synth
def test_a_salt_is_a_secret_that_stays_and_stands_in_no_template(deploy):
    hashed = deploy(PIPELINE.replace("mask: truncate(4)", "mask: hash"))
    settings = hashed.only(CONNECTOR)["ConnectorConfiguration"]
    assert settings["cdclake.mask.type"] == "cdclake.connect.MaskConverter"
    assert settings["cdclake.mask.salt.secret"] == "${secretsmanager:shop/mask:salt}"
    assert settings["cdclake.mask.hash"].endswith("card")
    assert broken_rules(hashed.templates) == []
    [salt] = [
        secret
        for secret in hashed.resources("AWS::SecretsManager::Secret")
        if secret["Properties"]["Name"] == "shop/mask"
    ]
    assert salt["DeletionPolicy"] == "RetainExceptOnCreate"
    assert salt["Properties"]["GenerateSecretString"]["GenerateStringKey"] == "salt"
    allowed = allowances(hashed, "kafkaconnect.amazonaws.com", named="ConnectorRole")
    assert len(allowed[READS_SECRET]) == 2
    [verify] = [
        job["Properties"]["DefaultArguments"]
        for job in hashed.resources("AWS::Glue::Job")
        if job["Properties"]["Name"] == "shop-verify_tables"
    ]
    assert verify["--mask_salt"] == "shop/mask"
    reading = {
        name: len(allowances(hashed, "glue.amazonaws.com", named=name)[READS_SECRET])
        for name in ("VerifyTables", "Operate")
    }
    assert reading == {"VerifyTables": 2, "Operate": 1}


@pytest.mark.parametrize("text", [PIPELINE, OFF])
def test_the_probe_has_what_its_request_needs(deploy, text):
    """The outputs of its stacks, with or without a connector."""
    templates = deploy(text).templates
    given = {
        key.removeprefix(naming.PROBE_OUTPUTS): "s"
        for stack in ("shop-network", "shop-cdc")
        for key in templates[stack]["Outputs"]
        if key.startswith(naming.PROBE_OUTPUTS)
    }
    revisions = {"PluginRevision": 1, "WorkerRevision": 1}
    asked = create_request("n", {}, "log", {**given, **revisions})
    model = boto3.client("kafkaconnect", region_name="eu-west-1").meta.service_model
    validate_parameters(asked, model.operation_model("CreateConnector").input_shape)


def test_the_probe_may_keep_its_state_and_read_its_secrets_only(created):
    role = role_of(created, "ConnectProbe")
    kafka = "arn:aws:kafka:eu-west-1:111122223333"
    own = naming.probe_connector_name("shop")
    mine = f"{kafka}:topic/shop/uuid/__amazon_msk_connect_configs_{own}_1"
    assert allows(role, "kafka-cluster:WriteData", mine)
    for topic in ("shop.public.orders", "__amazon_msk_connect_configs_shop-source_1"):
        assert not allows(role, "kafka-cluster:WriteData", f"{kafka}:topic/shop/uuid/{topic}")
    assert allows(role, READS_SECRET, IMPORTED["RefLoginSecret"])
    [trust] = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert own in str(trust["Condition"]["ArnLike"])
