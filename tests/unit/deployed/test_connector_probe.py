"""The throw-away connector of `doctor`, with answers in the shape of botocore's models."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

from cdclake import naming
from cdclake.cli import main as command
from cdclake.deployed import preflight
from cdclake.deployed.connector_answers import connector_answers
from cdclake.places import JARS
from tests.recorded.connect_answers import recorded_answers
from tests.unit.config.pipelines import VALID

NAME = naming.probe_connector_name("shop-dev")
ARN = f"arn:aws:kafkaconnect:eu-west-1:111122223333:connector/{NAME}/1"
OF = "arn:aws:kafkaconnect:eu-west-1:111122223333"
OUTPUTS = {
    "Role": "arn:aws:iam::111122223333:role/probe",
    "Plugin": f"{OF}:custom-plugin/shop/1",
    "Worker": f"{OF}:worker-configuration/shop/1",
    "Brokers": "b-1.shop:9098",
    "Subnets": "subnet-1,subnet-2",
    "SecurityGroup": "sg-1",
}
RECORDED = recorded_answers()
GOOD = RECORDED["all is well"]
[JAVA] = [line for line in GOOD.splitlines() if "jvm.spec" in line]
[TRIED] = [line for line in GOOD.splitlines() if "Failed testing connection" in line]
NO_PLUGIN = RECORDED["no Debezium in the plugin"].splitlines()[-1]
# The texts that the probe looks for, as they are in the locked jars.
_CONNECT = "org/apache/kafka/connect"
TEXTS = (
    ("connect/connect-runtime-*", f"{_CONNECT}/runtime/WorkerInfo", "jvm.spec"),
    ("connect/connect-runtime-*", f"{_CONNECT}/runtime/isolation/Plugins",
     "Failed to find any class that implements Connector and which name matches "),
    ("connect/connect-runtime-*", f"{_CONNECT}/runtime/isolation/Plugins",
     "Failed to find any class that implements ConfigProvider and which name matches "),
    ("connect/connect-runtime-*",
     f"{_CONNECT}/connector/policy/AbstractConnectorClientConfigOverridePolicy",
     "' policy does not allow '"),
    ("connect/kafka-clients-*", "org/apache/kafka/common/config/AbstractConfig",
     "Could not load config provider class "),
    ("connect/kafka-clients-*", "org/apache/kafka/common/config/ConfigException", "Invalid value "),
    ("debezium/debezium-connector-postgres-*",
     "io/debezium/connector/postgresql/PostgresConnector", "Failed testing connection for "),
    ("secrets/cdclake-connect", "cdclake/connect/SecretsManagerProvider", " cannot be read: "),
)  # fmt: skip
Expected = dict[str, tuple[str, str]]  # checks that did not pass, with a part of what they tell
EARLY: Expected = {"connect overrides": ("skipped", "did not get")}
OF_SECRETS: Expected = {**EARLY, "connect plugin": ("skipped", "reads secrets before")}
OF_PLUGIN: Expected = {**EARLY, "connect secrets": ("skipped", "did not get")}
# By case of the recording.
ANSWERS: dict[str, Expected] = {
    "the secret is missing": {
        **OF_SECRETS,
        "connect secrets": ("failed", "shop-dev/source cannot be read"),
    },
    "the secret has no password": {
        **OF_SECRETS,
        "connect secrets": ("failed", "has no key `password`"),
    },
    "all is well": {},
    "overrides are refused": {"connect overrides": ("warning", "policy None refuses linger.ms")},
    "no provider": {
        **OF_SECRETS,
        "connect secrets": ("failed", "no class cdclake.connect.SecretsManagerProvider"),
    },
    "no Debezium in the plugin": {
        **OF_PLUGIN,
        "connect plugin": ("failed", "Failed to find any class"),
    },
    "classes are too new": {
        **OF_PLUGIN,
        "connect java": ("failed", "too old for io/debezium"),
        "connect plugin": ("skipped", "newer Java"),
    },
}
OTHER_JAVA = "    jvm.spec = Amazon.com Inc., OpenJDK 64-Bit Server VM, {0}, {0}-LTS"
# With logs of other versions of Java, which no worker here writes.
LOGS: dict[str, tuple[str, Expected]] = {
    **{case: (RECORDED[case], expected) for case, expected in ANSWERS.items()},
    "first release of a newer Java": (f"{OTHER_JAVA.format('21')}\n{TRIED}", {}),
    "Java of the worker is 11": (
        f"{OTHER_JAVA.format('11.0.24')}\n{TRIED}", {"connect java": ("failed", "Java 11")},
    ),
    "no Java in the log": (TRIED, {"connect java": ("skipped", "does not name")}),
    "nothing of the connector": (
        JAVA, {**OF_PLUGIN, "connect plugin": ("failed", "does not show")},
    ),
}  # fmt: skip


def test_every_recorded_answer_is_judged():
    assert RECORDED.keys() == ANSWERS.keys()


@pytest.mark.parametrize(("jar", "name", "text"), TEXTS)
def test_the_probes_texts_are_those_of_the_plugin_and_its_worker(jar, name, text):
    [found] = JARS.glob(f"{jar}.jar")
    with zipfile.ZipFile(found) as archive:
        assert text.encode() in archive.read(f"{name}.class")


@pytest.mark.parametrize(
    "line",
    [
        "Could not load config provider class cdclake.connect.SecretsManagerProvider",
        "java.lang.ClassNotFoundException: cdclake.connect.SecretsManagerProvider",
        "Failed to find any class that implements ConfigProvider and which name matches"
        " cdclake.connect.SecretsManagerProvider, available ConfigProviders are: ",
    ],
)
def test_each_line_about_a_missing_provider_is_recognized(line):
    found = {c.name: c for c in connector_answers(f"{JAVA}\n{line}")}
    assert "no class cdclake.connect.SecretsManagerProvider" in found["connect secrets"].detail


@pytest.mark.parametrize("case", LOGS)
def test_each_answer_is_read_in_the_log(case):
    log, expected = LOGS[case]
    found = {c.name: c for c in connector_answers(log)}
    assert len(found) == 4
    assert {name: check.state for name, check in found.items() if check.state != "ok"} == {
        name: state for name, (state, _) in expected.items()
    }
    for name, (state, told) in expected.items():
        assert told in found[name].detail
        assert bool(found[name].remedy) == (state != "skipped")


class MskConnect:
    """What MSK Connect, CloudFormation and CloudWatch Logs answer; `calls` has the requests."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.states = ["CREATING", "FAILED"]  # after one another
        self.log, self.reason = GOOD, "Connector configuration is invalid"
        self.exists, self.refusals, self.deployed = False, 0, True
        self.refused, self.is_listed = False, True
        self.late: list[str] = []  # lines that the second read of the log has

    def answer(self, operation: str, asked: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((operation, asked))
        handler: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, operation)
        return handler(asked)

    def DescribeStacks(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self.deployed:
            message = f"Stack with id {asked['StackName']} does not exist"
            raise refusal("ValidationError", message)
        outputs = [
            {"OutputKey": f"{naming.PROBE_OUTPUTS}{key}", "OutputValue": value}
            for key, value in OUTPUTS.items()
        ]
        stack = {"StackName": "s", "CreationTime": "2026-01-01", "StackStatus": "CREATE_COMPLETE"}
        other = {"OutputKey": "ConnectorMadeOf", "OutputValue": "x"}
        return {"Stacks": [{**stack, "Outputs": [other, *outputs]}]}

    def ListConnectors(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = {"connectorName": NAME, "connectorArn": ARN, "connectorState": self.states[0]}
        other = {**found, "connectorName": f"{asked['connectorNamePrefix']}-2"}
        return {"connectors": [other, *([found] if self.exists and self.is_listed else [])]}

    def DescribeCustomPlugin(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"latestRevision": {"revision": 1}}

    def DescribeWorkerConfiguration(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"latestRevision": {"revision": 3}}

    def CreateConnector(self, _: dict[str, Any]) -> dict[str, Any]:
        if self.refused:
            raise refusal("BadRequestException", "no")
        self.exists = True
        return {"connectorArn": ARN}

    def DescribeConnector(self, _: dict[str, Any]) -> dict[str, Any]:
        if not self.exists:
            raise refusal("NotFoundException", "no connector with this ARN")
        if len(self.states) > 1:
            self.states.pop(0)
        return {
            "connectorState": self.states[0],
            "stateDescription": {"code": "c", "message": self.reason},
        }

    def FilterLogEvents(self, _: dict[str, Any]) -> dict[str, Any]:
        lines = self.log.splitlines()
        self.log = "\n".join([*lines, *self.late])
        self.late = []
        return {"events": [{"message": line} for line in lines]}

    def DeleteConnector(self, _: dict[str, Any]) -> dict[str, Any]:
        if self.refusals:
            self.refusals -= 1
            raise refusal("BadRequestException", "it is being created")
        self.exists = False
        return {"connectorArn": ARN}


def refusal(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")


@pytest.fixture
def msk(monkeypatch) -> MskConnect:
    service, clock = MskConnect(), [0.0]

    def call(client: Any, operation: str, asked: dict[str, Any]) -> Any:
        model = client.meta.service_model.operation_model(operation)
        validate_parameters(asked, model.input_shape)
        told = service.answer(operation, asked)
        validate_parameters(told, model.output_shape)
        return told

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    monkeypatch.setattr("cdclake.deployed.connector_probe.time.sleep", sleep)
    monkeypatch.setattr("cdclake.deployed.connector_probe.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(preflight, "preflight", lambda deployment: [])
    return service


@pytest.fixture
def doctor(capsys, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(f"{VALID}environments: {{dev: {{}}}}\n")

    def run(*words):
        where = (str(file), "--environment", "dev", "--probe-connector", "--json")
        with pytest.raises(SystemExit) as caught:
            command.main(("doctor", *where, *words))
        return caught.value.code, json.loads(capsys.readouterr().out)

    return run


AWS = ("--target", "aws", "--yes")


def names(msk: MskConnect) -> list[str]:
    return [name for name, _ in msk.calls]


def test_the_connector_is_created_as_deployed_and_deleted(doctor, msk):
    code, told = doctor(*AWS)
    assert (code, [check["state"] for check in told["checks"]]) == (0, ["ok"] * 5)
    asked = dict(msk.calls)["CreateConnector"]
    assert asked["serviceExecutionRoleArn"] == OUTPUTS["Role"]
    assert asked["workerConfiguration"]["revision"] == 3
    assert asked["kafkaCluster"]["apacheKafkaCluster"]["vpc"]["subnets"] == ["subnet-1", "subnet-2"]
    settings = asked["connectorConfiguration"]
    assert settings["connector.class"] == "cdclake.connect.LsnGroupConnector"
    assert settings["database.hostname"] == "127.0.0.1"
    assert settings["database.password"].startswith("${secretsmanager:")
    assert not msk.exists


def test_what_fails_is_told_and_the_connector_deleted(doctor, msk):
    msk.log, msk.reason = JAVA, NO_PLUGIN
    code, told = doctor(*AWS)
    assert code == 1
    assert NO_PLUGIN in json.dumps(told)
    assert not msk.exists


def test_one_that_is_not_listed_yet_is_deleted(doctor, msk):
    msk.is_listed = False
    assert doctor(*AWS)[0] == 0
    assert not msk.exists


def test_lines_that_arrive_late_are_read(doctor, msk):
    msk.log, msk.late = JAVA, [TRIED]
    assert doctor(*AWS)[0] == 0


def test_one_that_hangs_is_deleted(doctor, msk):
    msk.states, msk.log = ["CREATING"], JAVA
    assert doctor(*AWS)[0] == 1
    assert not msk.exists


def test_one_that_an_earlier_probe_left_is_deleted_first(doctor, msk):
    msk.exists = True
    told = doctor(*AWS)[1]
    assert told["checks"][0]["name"] == "connector of an earlier probe"
    assert names(msk).index("DeleteConnector") < names(msk).index("CreateConnector")
    assert not msk.exists


def test_a_refused_deletion_is_tried_again(doctor, msk):
    msk.refusals = 3
    assert doctor(*AWS)[0] == 0
    assert names(msk).count("DeleteConnector") == 4
    assert not msk.exists


def test_one_that_cannot_be_deleted_is_named(doctor, msk):
    msk.refusals = 10_000
    code, told = doctor(*AWS)
    assert code == 4
    assert "costs money: it is being created" in told["error"]["message"]
    assert told["error"]["remedy"].endswith(f"--connector-arn {ARN}`")


def test_an_error_in_between_deletes_it_too(doctor, msk, monkeypatch):
    def denied(_):
        raise refusal("AccessDeniedException", "no logs for you")

    monkeypatch.setattr(msk, "FilterLogEvents", denied)
    code, told = doctor(*AWS)
    assert (code, "no logs for you" in told["error"]["message"]) == (4, True)
    assert not msk.exists


def test_a_refused_creation_is_told(doctor, msk):
    msk.refused = True
    code, told = doctor(*AWS)
    assert (code, "could not create the connector" in told["error"]["message"]) == (4, True)


def test_without_the_stack_nothing_is_created(doctor, msk):
    msk.deployed = False
    code, told = doctor(*AWS)
    assert (code, told["error"]["code"]) == (3, "not_running")
    assert "shop-dev-network" in told["error"]["message"]
    assert names(msk) == ["DescribeStacks"]


def test_its_cost_has_to_be_accepted(doctor, msk):
    code, told = doctor("--target", "aws")
    assert (code, told["error"]["remedy"]) == (2, "add --yes to accept it")
    assert "0.11 dollars an hour" in told["error"]["message"]
    assert msk.calls == []


def test_it_runs_on_aws_only(doctor, msk):
    assert doctor("--yes")[1]["error"]["remedy"] == "add --target aws"
    assert msk.calls == []
