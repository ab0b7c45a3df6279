"""Model of the section `source:`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from cdclake.config.literals import check_source_name
from cdclake.config.problems import Refused
from cdclake.config.section import Section
from cdclake.plan import GLUE_REGISTRY

DEFAULT_COMPATIBILITY = "BACKWARD"


def _check_url(url: str) -> str:
    """Return `url` if it is one of a server, without a login, a query or a fragment."""
    parts = urlsplit(url)
    try:
        is_plain = parts.port != 0 and not (
            parts.username or parts.password or parts.query or parts.fragment
        )
    except ValueError:  # the port is not one
        is_plain = False
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise Refused(
            f"invalid address of a schema registry {url!r}",
            "write `http://` or `https://`, a host and a port, without a login",
        )
    return url


def _check_registry(value: Any) -> Any:
    """Return `value` if it is a registry; pydantic would report each of its forms."""
    if isinstance(value, dict) and value.keys() == {"apicurio"}:
        _check_url(str(value["apicurio"]))
    elif value != GLUE_REGISTRY:
        raise Refused(
            f"invalid schema registry {value!r}", "write `glue`, or `{apicurio: URL}` with its URL"
        )
    return value


SourceName = Annotated[str, AfterValidator(check_source_name)]


class Snapshot(Section):
    """Snapshot of the rows that already exist."""

    mode: Literal["initial", "bulk"] = Field(
        default="initial",
        description="Reads every row once before the changes. initial: through Kafka. bulk: with a"
        " Spark job that reads the database in parallel.",
    )


class ApicurioRegistry(Section):
    """Apicurio registry for the schemas of the tables' events."""

    apicurio: str = Field(description="URL of the registry, without a path.")


class Source(Section):
    """PostgreSQL database; never contains a password."""

    database: SourceName = Field(description="Name of the database; fixed once the lake exists.")
    snapshot: Snapshot = Field(default_factory=Snapshot)
    format: Literal["json", "avro"] = Field(
        default="json",
        description="Format of the tables' events in Kafka; avro: with a schema registry.",
    )
    registry: Annotated[
        Literal["glue"] | ApicurioRegistry | None, BeforeValidator(_check_registry)
    ] = Field(
        default=None,
        description="Schema registry of the events, with `format: avro`: the Glue Schema Registry,"
        " or an Apicurio registry.",
    )
    compatibility: (
        Literal[
            "NONE",
            "DISABLED",
            "BACKWARD",
            "BACKWARD_ALL",
            "FORWARD",
            "FORWARD_ALL",
            "FULL",
            "FULL_ALL",
        ]
        | None
    ) = Field(
        default=None,
        description="Compatibility mode of new schemas in the Glue Schema Registry; default:"
        " BACKWARD.",
    )
