"""Connectors that a pipeline file declares next to its Debezium connector."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

ICEBERG_SINK = "iceberg-sink"  # the built-in plugin
ICEBERG_SINK_CLASS = "org.apache.iceberg.connect.IcebergSinkConnector"
_REFERENCE = re.compile(r"\$\{secretsmanager:([^:}]+):[^}]+\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredConnector:
    """Sink connector that reads the topics of some of the pipeline's tables."""

    name: str
    plugin: str  # `iceberg-sink`, or a folder or zip relative to the project's folder
    connector_class: str
    tables: tuple[str, ...]  # lake names
    tasks: int = 1
    mcus: int = 1  # on AWS: size of its worker
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_iceberg_sink(self) -> bool:
        """Check whether the connector is the built-in Iceberg sink."""
        return self.plugin == ICEBERG_SINK

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the names of the secrets that the settings refer to."""
        found = (name for value in self.settings.values() for name in referred_secrets(value))
        return tuple(sorted(set(found)))

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> DeclaredConnector:
        """Parse an entry of the plan's JSON."""
        return DeclaredConnector(**{**raw, "tables": tuple(raw["tables"])})


def connector_log(name: str) -> str:
    """Return the name of the connector's log on AWS, also as a component of `cdclake logs`."""
    return f"connector-{name}"


def referred_secrets(value: str) -> Iterator[str]:
    """Yield the names of the secrets that a setting refers to.

    >>> list(referred_secrets("${secretsmanager:shop/warehouse:password}"))
    ['shop/warehouse']
    """
    for match in _REFERENCE.finditer(value):
        yield match[1]


def is_reference(value: str) -> bool:
    """Check whether a setting consists of one reference to a secret.

    >>> is_reference("${secretsmanager:shop/warehouse:password}"), is_reference("hunter2")
    (True, False)
    """
    return _REFERENCE.fullmatch(value) is not None
