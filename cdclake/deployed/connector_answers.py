"""Answers in the log of a Connect worker about a connector that cannot reach its database."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdclake.check import Check, failed, passed, skipped, warned

LEAST_JAVA = 17  # the class files of Debezium and of the plugin's own code
# Kafka's WorkerInfo: vendor, name, version of Java, version of the machine.
_JVM = re.compile(r"jvm\.spec = [^\n]*, (\d+)[^,\n]*, [^,\n]+")
_OLD_JAVA = re.compile(r"UnsupportedClassVersionError: (\S+)")
_NO_OVERRIDE = re.compile(r"The '(\w+)' policy does not allow '([^']+)' to be overridden")
_UNREAD = re.compile(r"the secret \S+ (?:cannot be read|has no key|is binary|is not a JSON)[^\n]*")
_NO_PROVIDER = re.compile(
    r"(?:ClassNotFoundException: |Could not load config provider class |Invalid value "
    r"|ConfigProvider and which name matches )"
    r"((?:cdclake|com\.amazonaws)\.\S*(?:Secrets|ConfigProvider)\w*)"
)
_NO_CONNECTOR = re.compile(r"Failed to find any class that implements Connector[^\n]*")
# Debezium's own line, once it has its settings and has tried to reach the database.
_TRIED = "Failed testing connection for"
_REPORT = "report it with the worker's log"


def connector_answers(log: str) -> list[Check]:
    """Return the checks that the log answers; `log` has the connector's failure as well."""
    return [*_java(log), *_plugin(log), *_provider(log), *_overrides(log)]


def _java(log: str) -> Iterator[Check]:
    name, found, old = "connect java", _JVM.search(log), _OLD_JAVA.search(log)
    if old is not None:
        yield failed(name, f"the worker's Java is too old for {old[1]}", _REPORT)
    elif found is None:
        yield skipped(name, "the worker's log does not name its Java")
    elif int(found[1]) < LEAST_JAVA:
        yield failed(name, f"Java {found[1]} is older than {LEAST_JAVA}", _REPORT)
    else:
        yield passed(name, f"Java {found[1]}")


def _plugin(log: str) -> Iterator[Check]:
    name, missing = "connect plugin", _NO_CONNECTOR.search(log)
    if _TRIED in log:
        yield passed(name, "Debezium was loaded, and accepted the connector's settings")
    elif _OLD_JAVA.search(log):
        yield skipped(name, "it needs a newer Java")
    elif _UNREAD.search(log) or _NO_PROVIDER.search(log):
        yield skipped(name, "the worker reads secrets before it loads Debezium")
    elif missing is not None:
        remedy = "fetch the jars again and deploy the stack `cdc`: changed jars make another plugin"
        yield failed(name, missing[0], remedy)
    else:
        yield failed(name, "the worker's log does not show that Debezium was loaded", _REPORT)


def _provider(log: str) -> Iterator[Check]:
    name = "connect secrets"
    unread, missing = _UNREAD.search(log), _NO_PROVIDER.search(log)
    if unread is not None:
        yield failed(name, unread[0], "see the role's statements and the secret's content")
    elif missing is not None:
        yield failed(
            name, f"the worker has no class {missing[1]}", "see `aws: connect: provider_jar:`"
        )
    elif _TRIED in log:
        yield passed(name, "the provider read the connector's password")
    else:
        yield skipped(name, "the connector did not get as far as its settings")


def _overrides(log: str) -> Iterator[Check]:
    name, refused = "connect overrides", _NO_OVERRIDE.search(log)
    if refused is not None:
        yield warned(
            name,
            f"the worker's policy {refused[1]} refuses {refused[2]}; the connector overrides none",
            "leave `consumer.override.*` out of the `settings:` under `connectors:`",
        )
    elif _TRIED in log:
        yield passed(name, "a connector may override its clients' settings")
    else:
        yield skipped(name, "the connector did not get as far as its settings")
