"""Kafka Connect workers that log as much as MSK Connect's, and what they answer to the probe.

    python -m tests.local.connect_worker

records the answers into `tests/recorded/connect_answers.json`, on a lake that is gone afterwards.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.deployed.connector_probe import probe_settings
from cdclake.local.components import connect
from cdclake.local.components.connect import DIRECT, ConnectApi
from cdclake.local.components.installed import aws_variables, environment, jvm
from cdclake.local.lake import stack
from cdclake.local.process.credentials import aws_keys
from cdclake.local.process.home import Home
from tests.recorded.connect_answers import FILE
from tests.unit.config.pipelines import VALID

REGION = "us-east-1"
_LOG4J = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c:%L)%n
"""  # Kafka's own connect-log4j.properties, without the connector's context
_START_S = 120.0
_NEXT_JAVA = 99  # major version of a class file that no Java can load
_CONNECTOR = "io/debezium/connector/postgresql/PostgresConnector.class"
# A line with more than a setting's value, a stack frame or a class that was found.
_TELLING = re.compile(r"\] (?:ERROR|WARN|FATAL) |^(?:Caused by: )?[\w.$]+(?:Exception|Error)\b")
_KEPT_CHARACTERS = 600
_TOPICS = ("config", "offset", "status")


@dataclass(frozen=True, slots=True)
class Answer:
    """Log of a worker, and how its REST interface refused the connector."""

    log: str
    reason: str

    def recorded(self) -> dict[str, str | list[str]]:
        """Return what the fixture keeps: Java's line, warnings and errors, each once."""
        lines = [
            line[:_KEPT_CHARACTERS]
            for line in self.log.splitlines()
            if _TELLING.search(line) or "jvm.spec" in line
        ]
        return {"log": list(dict.fromkeys(lines)), "reason": self.reason}


class Workers:
    """Starts a worker per case, next to the Kafka and the Secrets Manager of a local lake."""

    def __init__(self, home: Home, folder: Path) -> None:
        """Start them; the caller purges the lake."""
        endpoints = stack.bring_up(home, embedded_postgres=False)
        stack.stop_component(home, connect.NAME)
        self._home, self._folder, self._api = home, folder, endpoints.connect
        text = connect.config_file(home).read_text()
        self._settings = dict(line.split("=", 1) for line in text.splitlines())
        (folder / "log4j.properties").write_text(_LOG4J)
        file = folder / "shop.yaml"
        file.write_text(f"{VALID}environments: {{dev: {{}}}}\n")
        deployment = load_deployment(file, "dev")
        self._probe = probe_settings(deployment, REGION)
        self._secret = naming.login_secret(deployment.prefix)
        self._secrets = boto3.client(
            "secretsmanager",
            endpoint_url=endpoints.glue,
            region_name=REGION,
            aws_access_key_id=endpoints.keys.user,
            aws_secret_access_key=endpoints.keys.password,
        )

    def answers(self) -> dict[str, Answer]:
        """Run every case; return its answer by name."""
        found = {"the secret is missing": self._run({"client": "All"})}
        self._secrets.create_secret(Name=self._secret, SecretString='{"username": "x"}')
        found["the secret has no password"] = self._run({"client": "All"})
        self._secrets.put_secret_value(
            SecretId=self._secret, SecretString='{"username": "x", "password": "y"}'
        )
        found["all is well"] = self._run({"client": "All"})
        found["overrides are refused"] = self._run({"client": "None"})
        found["no provider"] = self._run({"plugins": self._without("cdclake-*.jar")})
        found["no Debezium in the plugin"] = self._run({"plugins": self._without("debezium-*.jar")})
        found["classes are too new"] = self._run({"plugins": str(self._too_new())})
        return found

    def _run(self, changes: dict[str, str]) -> Answer:
        """Start a worker, ask it for the connector and end it."""
        with self._worker(changes) as (process, api, log):
            reason = self._ask(process, api)
        return Answer(log.read_text(), reason)

    @contextmanager
    def _worker(
        self, changes: dict[str, str]
    ) -> Iterator[tuple[subprocess.Popen[bytes], ConnectApi, Path]]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        file, log = self._folder / f"{port}.properties", self._folder / f"{port}.log"
        topics = {f"{what}.storage.topic": f"{what}-{port}" for what in _TOPICS}
        settings = {
            **self._settings, **topics,
            "group.id": f"probe-{port}", "listeners": f"http://127.0.0.1:{port}",
            "connector.client.config.override.policy": changes.get("client", "All"),
            "plugin.path": changes.get("plugins", self._settings["plugin.path"]),
            "plugin.discovery": "hybrid_warn",
        }  # fmt: skip
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        quiet = "-Dlog4j.configuration="
        chosen = f"{quiet}file:{self._folder / 'log4j.properties'}"
        command = [
            chosen if word.startswith(quiet) else word
            for word in jvm(self._home, connect.NAME, "128m:512m", connect.WORKER)
        ]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, str(file)],
                env=environment(**aws_variables(aws_keys(self._home))),
                cwd=self._home.run,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
            try:
                yield process, ConnectApi(f"http://127.0.0.1:{port}", self._api.login), log
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def _ask(self, process: subprocess.Popen[bytes], api: ConnectApi) -> str:
        """Return how the worker refuses the connector; empty if it ends before it answers."""
        end = time.monotonic() + _START_S
        while not _is_answering(api):
            if process.poll() is not None:
                return ""
            assert time.monotonic() < end, "the worker neither answers nor ends"
            time.sleep(0.5)
        request = urllib.request.Request(
            f"{api.url}/connectors",
            headers={"Content-Type": "application/json", **api.headers},
            data=json.dumps({"name": "probe", "config": self._probe}).encode(),
        )
        try:
            with DIRECT.open(request, timeout=90) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as error:
            return str(json.load(error)["message"])

    def _plugins(self) -> Path:
        """A copy of the plugin's folder, with links to the jars."""
        copy = Path(tempfile.mkdtemp(dir=self._folder))
        own = copy / "cdclake"
        own.mkdir()
        for jar in Path(self._settings["plugin.path"]).glob("cdclake/*/*.jar"):
            (own / jar.name).symlink_to(jar.resolve())
        return copy

    def _without(self, jars: str) -> str:
        plugins = self._plugins()
        missing = list(plugins.glob(f"cdclake/{jars}"))
        assert missing
        for jar in missing:
            jar.unlink()
        return str(plugins)

    def _too_new(self) -> Path:
        """The plugin with a connector that was compiled for a newer Java."""
        plugins = self._plugins()
        [jar] = plugins.glob("cdclake/debezium-connector-postgres-*.jar")
        original = jar.resolve()
        jar.unlink()
        with zipfile.ZipFile(original) as source, zipfile.ZipFile(jar, "w") as target:
            for name in source.namelist():
                content = source.read(name)
                if name == _CONNECTOR:
                    content = content[:6] + _NEXT_JAVA.to_bytes(2) + content[8:]
                target.writestr(name, content)
        return plugins


def _is_answering(api: ConnectApi) -> bool:
    try:
        return connect.answers(api)
    except OSError:
        return False


def main() -> None:
    """Record the answers."""
    folder = Path(tempfile.mkdtemp(prefix="cdclake-record-"))
    home = Home(folder / "home")
    home.create()
    try:
        answers = Workers(home, folder).answers()
        stored = {name: answer.recorded() for name, answer in answers.items()}
        FILE.write_text(json.dumps(stored, indent=1).replace(os.fspath(folder), "FOLDER") + "\n")
    finally:
        stack.purge(home)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
