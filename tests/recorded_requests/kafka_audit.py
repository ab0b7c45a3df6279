"""Authorizations that the local broker is asked for, by the role of the client.

Each role has its own login here, and the broker has an authorizer that allows everything and logs
every decision. Kafka's operations are those that MSK's IAM actions stand for. Source: Service
Authorization Reference, "Apache Kafka APIs for Amazon MSK", and Kafka's "Operations and Resources
on Protocols".
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cdclake.local.components import connect, jaas, kafka
from cdclake.local.components.installed import environment, jvm, shell
from cdclake.local.lake import stack
from cdclake.local.process.credentials import Login, kafka_login
from cdclake.local.process.home import Home, read_json
from cdclake.local.process.supervisor_client import Component
from tests.local.running import RunningLake
from tests.recorded_requests.permissions import Needed

CONNECTOR = "connector"  # the role of the worker
_PASSWORD = "recorded"
_LOGGER = "kafka.authorizer.logger"
_AUDIT = re.compile(
    r"Principal = User:(\S+) is Allowed operation = (\w+) from host = \S+ on resource = "
    r"(\w+):LITERAL:(\S+) for request = (\w+)",
    re.I,
)
# By Kafka's resource and operation: what IAM calls them.
_ACTIONS = {
    ("topic", "describe"): "DescribeTopic",
    ("topic", "describeconfigs"): "DescribeTopicDynamicConfiguration",
    ("topic", "read"): "ReadData",
    ("topic", "write"): "WriteData",
    ("group", "describe"): "DescribeGroup",
    ("group", "read"): "AlterGroup",
    ("cluster", "describe"): "DescribeCluster",
    ("cluster", "idempotentwrite"): "WriteDataIdempotently",
}


# Kafka looks at the topics only if this is denied; IAM knows only the action on topics.
_DECIDED_BY_TOPIC = {("cluster", "create")}


@dataclass(frozen=True, slots=True)
class AuditedKafka:
    """The lake's broker with an audit log."""

    log: Path

    def needed(self, role: str) -> set[Needed]:
        """Return the permissions that the role's requests needed so far.

        `on` is `topic/NAME` or `group/NAME`.

        A list of all topics shows only those that the client may describe, so the other topics in
        it are not needed.
        """
        asked = {each[1:] for each in _AUDIT.findall(self.log.read_text()) if each[0] == role}
        used = {name for _, _, name, request in asked if request.lower() != "metadata"}
        needed = {Needed("kafka-cluster:Connect", "cluster")} if asked else set()
        for operation, kind, name, request in asked:
            if request.lower() == "metadata" and name not in used:
                continue
            resource = kind.lower()
            operation = operation.replace("_", "").lower()
            if (resource, operation) in _DECIDED_BY_TOPIC:
                continue
            action = _ACTIONS.get((resource, operation), f"{operation} of {resource}")
            on = "cluster" if resource == "cluster" else f"{resource}/{name}"
            needed.add(Needed(f"kafka-cluster:{action}", on))
        return needed


def kafka_options(role: str, arguments: dict[str, str]) -> dict[str, str]:
    """The job's Kafka options with the login of its role; none for a job without Kafka."""
    if "--kafka_options" not in arguments:
        return {}
    module = f"{jaas.client_module(_login(role))};".replace("\n", "")
    given = json.loads(arguments["--kafka_options"]) | {"kafka.sasl.jaas.config": module}
    return {"--kafka_options": json.dumps(given)}


def audited_kafka(running: RunningLake, roles: Iterable[str]) -> AuditedKafka:
    """Restart broker and worker with a login for each role, and with the audit log."""
    home = Home(running.home)
    own = kafka_login(home)
    with kafka.config_file(home).open("a") as config:
        config.write(
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
            f"allow.everyone.if.no.acl.found=true\nsuper.users=User:{own.user}\n"
        )
    logins = jaas.file(home).read_text()
    line = f'user_{own.user}="{own.password}"'
    more = "".join(f'\n  user_{role}="{_PASSWORD}"' for role in (CONNECTOR, *roles))
    server, _, clients = logins.replace(line, line + more).partition("KafkaClient")
    own_module, worker = jaas.client_module(own), jaas.client_module(_login(CONNECTOR))
    jaas.file(home).write_text(f"{server}KafkaClient{clients.replace(own_module, worker)}")
    ports = read_json(home.ports_file)
    _restart(running, home, kafka.component(home, ports[kafka.NAME]))
    _log_decisions(running, home)
    _restart(running, home, connect.component(home, ports[connect.NAME]))
    jaas.file(home).write_text(logins.replace(line, line + more))  # processes to come are not it
    return AuditedKafka(home.log(kafka.NAME))


def _login(role: str) -> Login:
    return Login(role, _PASSWORD)


def _restart(running: RunningLake, home: Home, component: Component) -> None:
    """Start the component again without writing its configuration."""
    name = component.spec.name
    running.kill(name)
    running.eventually(lambda: not running.is_running(name), 60)
    stack.run_component(home, component.spec, component.ready, component.timeout_s)


def _log_decisions(running: RunningLake, home: Home) -> None:
    """Raise the level of the broker's audit log, as an operator would."""
    client = home.run / "audit.properties"
    module = f"{jaas.client_module(kafka_login(home))};".replace("\n", "")
    settings = {**kafka.CLIENT_SETTINGS, "sasl.jaas.config": module}
    client.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    subprocess.run(
        [
            *jvm(home, kafka.NAME, "32m:128m", "kafka.admin.ConfigCommand"),
            *("--bootstrap-server", running.endpoints.kafka.address),
            *("--command-config", str(client), "--entity-type", "broker-loggers"),
            *("--entity-name", "1", "--alter", "--add-config", f"{_LOGGER}=DEBUG"),
        ],
        env={**shell(), **environment()},
        check=True,
    )
