"""Shape of `firehose:`: how the tables with `delivery: firehose` are delivered.

Limits of single values are Firehose's own; what only several together can break is in
`checks.firehose`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from cdclake import naming
from cdclake.config.problems import Refused
from cdclake.config.routing import MAX_CHARACTERS
from cdclake.config.table_model import Section

_DOMAIN = re.compile(r"[a-z][a-z0-9-]{0,29}")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*")
_MAX_PREFIX_CHARACTERS = 200
STREAMS_PER_REGION = 5000  # AWS's default (API reference of CreateDeliveryStream)


def _check_domain(name: str) -> str:
    if _DOMAIN.fullmatch(name) is None:
        raise Refused(
            f"{name!r} is no name of a domain",
            "write 1 to 30 lower-case letters, digits and hyphens, a letter first",
        )
    return name


def _check_prefix(prefix: str) -> str:
    if _PREFIX.fullmatch(prefix) is None or len(prefix) > _MAX_PREFIX_CHARACTERS:
        raise Refused(
            f"{prefix!r} is no folder for what fails",
            "write lower-case letters, digits, `-`, `_` and `.`, with `/` between folders only;"
            " date and kind of error are added",
        )
    taken = (naming.CONTROL_PREFIX, naming.CHECKPOINT_PREFIX, naming.DEPLOYED_PREFIX)
    if prefix.split("/")[0] in taken:
        raise Refused(f"the folder {prefix.split('/')[0]!r} is cdclake's own", "write another one")
    return prefix


def _check_route(query: str) -> str:
    if not query.strip() or "\n" in query:
        raise Refused("the query is empty or has several lines", "fold it into one with `>-`")
    if len(query) > MAX_CHARACTERS:
        raise Refused(
            f"the query has {len(query)} characters, and Firehose takes {MAX_CHARACTERS}",
            "part the domain, or leave `route:` out: the function knows its tables",
        )
    return query


class Buffer(Section):
    """What is collected before it is appended to the logs; Firehose takes both as hints."""

    seconds: int = Field(default=300, ge=0, le=900, description="At most so long.")
    mib: int = Field(default=64, ge=1, le=128, description="At most so much.")


class Function(Section):
    """What is collected before the function makes rows of it, and how often it is tried."""

    seconds: int = Field(default=60, ge=0, le=900, description="At most so long.")
    mib: int = Field(default=1, ge=1, le=3, description="At most so much.")
    retries: int = Field(default=3, ge=0, le=300, description="Calls after one that failed.")


class StreamSettings(Section):
    """One stream of Firehose."""

    buffer: Buffer = Field(default_factory=Buffer)
    function: Function = Field(default_factory=Function)
    retry_seconds: int = Field(
        default=300,
        ge=0,
        le=7200,
        description="How long Firehose tries to append before it puts the rows to what failed.",
    )
    backup: Literal["failed", "all"] = Field(
        default="failed", description="What also lies in S3 as it came: what failed, or everything."
    )
    mib_per_second: int = Field(
        default=1, ge=1, le=1000, description="The most that its topic is expected to bring."
    )


class Domain(StreamSettings):
    """The stream of a domain."""

    route: Annotated[str, AfterValidator(_check_route)] | None = Field(
        default=None,
        description="A query in jq 1.6 that finds the log of each row that the function makes:"
        " one object with `destinationDatabaseName` and `destinationTableName`. Without it, the"
        " function says where its rows go.",
    )


class Firehose(StreamSettings):
    """Delivery by Firehose: every stream's settings, and domains of tables that share one."""

    error_prefix: Annotated[str, AfterValidator(_check_prefix)] = Field(
        default="firehose", description="Folder of the bucket for state, for what fails."
    )
    account_streams: int = Field(
        default=STREAMS_PER_REGION,
        ge=1,
        description="Streams that the account may still have in the region.",
    )
    domains: dict[Annotated[str, AfterValidator(_check_domain)], Domain] = Field(
        default_factory=dict,
        description="Streams over a topic that several tables share, with what they have of their"
        " own of the settings above; tables name theirs as `domain:`.",
    )


def settings_of(section: Mapping[str, Any], domain: str | None) -> Domain:
    """The settings of a domain's stream, or of one with a single table (None).

    `section` is `firehose:` as it is written; pydantic's ValidationError if it is wrong.
    """
    own = section.get("domains", {}).get(domain, {}) if domain else {}
    return Domain.model_validate(with_settings_of_all(section, own))


def with_settings_of_all(section: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What a stream has of its own, over what `section`, `firehose:`, says for all of them."""
    merged = {key: value for key, value in section.items() if key in StreamSettings.model_fields}
    for key, value in own.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged
