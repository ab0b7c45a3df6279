"""Model of `connectors:`: Kafka Connect sinks next to the pipeline's Debezium connector."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from cdclake.config.problems import Refused, check_distinct
from cdclake.config.section import Section

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


def _check_connector_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise Refused(
            f"invalid connector name {name!r}",
            "use 1 to 20 lowercase letters, digits and hyphens, starting with a letter",
        )
    return name


def _as_text(value: Any) -> Any:
    """Return a number or boolean as Connect spells it; it accepts only text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


ConnectorName = Annotated[str, AfterValidator(_check_connector_name)]
SettingText = Annotated[
    str,
    BeforeValidator(_as_text),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


class ConnectorEntry(Section):
    """Sink connector: its plugin, the tables whose topics it reads, and its settings."""

    plugin: str = Field(
        min_length=1,
        examples=["iceberg-sink", "plugins/jdbc-sink.zip"],
        description="iceberg-sink: Apache Iceberg's sink, which appends each change to"
        " `<t>_sink`. Otherwise a folder or a zip with the plugin's jars, relative to the project's"
        " folder.",
    )
    connector_class: str | None = Field(
        default=None,
        alias="class",
        examples=["io.example.JdbcSinkConnector"],
        description="Java class of the connector; iceberg-sink has its own.",
    )
    tables: Annotated[list[str], AfterValidator(check_distinct)] = Field(
        min_length=1,
        examples=[["public.orders"]],
        description="Tables whose topics it reads, as `tables:` spells them.",
    )
    tasks: int = Field(
        default=1, ge=1, le=8, description="Tasks; more than it has topics are idle."
    )
    mcus: Literal[1, 2, 4, 8] = Field(
        default=1, description="Size of its worker on AWS; each is one vCPU and 4 GB."
    )
    settings: dict[str, SettingText] = Field(
        default_factory=dict,
        description="Further settings of the connector. Passwords and keys only as references:"
        " `${secretsmanager:NAME:KEY}`.",
    )
