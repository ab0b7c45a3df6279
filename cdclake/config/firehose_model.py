"""Model of `firehose:`: delivery of the tables with `delivery: firehose`.

Limits of single values are those of Firehose; `checks.firehose` checks combinations of values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from cdclake import naming
from cdclake.config.problems import Refused
from cdclake.config.routing import MAX_CHARACTERS
from cdclake.config.section import Section

_DOMAIN = re.compile(r"[a-z][a-z0-9-]{0,29}")
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*")
_MAX_PREFIX_CHARACTERS = 200
# Keys of a stream in earlier versions: the message and the remedy.
REMOVED_KEYS = {
    "backup": (
        "`backup` was removed: Firehose backs up only failed records of Iceberg tables, by"
        " `S3BackupMode` of IcebergDestinationConfiguration in its API reference",
        "remove the key: failed and refused records are kept without it; all records of MSK stay in"
        " Kafka, and those of `source: kinesis` in its stream, for the retention there",
    )
}
MIN_FUNCTION_MIB, MAX_FUNCTION_MIB = 0.2, 3  # API reference of ProcessorParameter
STREAMS_PER_REGION = 5000  # AWS's default (API reference of CreateDeliveryStream)


def _check_domain(name: str) -> str:
    if _DOMAIN.fullmatch(name) is None:
        raise Refused(
            f"invalid domain name {name!r}",
            "use 1 to 30 lowercase letters, digits and hyphens, starting with a letter",
        )
    return name


def _check_prefix(prefix: str) -> str:
    if _PREFIX.fullmatch(prefix) is None or len(prefix) > _MAX_PREFIX_CHARACTERS:
        raise Refused(
            f"invalid error prefix {prefix!r}",
            "use lowercase letters, digits, `-`, `_` and `.`, with `/` only between folders;"
            " Firehose adds the kind of error and the date",
        )
    taken = (
        *(naming.CONTROL_PREFIX, naming.CHECKPOINT_PREFIX),
        *(naming.DEPLOYED_PREFIX, naming.SOURCE_SQL_PREFIX),
    )
    if prefix.split("/")[0] in taken:
        raise Refused(f"the folder {prefix.split('/')[0]!r} is reserved", "choose another one")
    return prefix


def _check_route(query: str) -> str:
    if not query.strip() or "\n" in query:
        raise Refused("the query is empty or has several lines", "fold it into one with `>-`")
    if len(query) > MAX_CHARACTERS:
        raise Refused(
            f"the query has {len(query)} characters; Firehose accepts at most {MAX_CHARACTERS}",
            "split the domain, or remove `route:`: the function can route by table itself",
        )
    return query


class Buffer(Section):
    """Buffer before each append to a table; Firehose treats both limits as hints."""

    seconds: int = Field(
        default=300, ge=0, le=900, description="Seconds of buffering, at most, before an append."
    )
    mib: int = Field(default=64, ge=1, le=128, description="MiB of rows, at most, in one append.")


class Function(Section):
    """Buffer in front of the function that decodes rows, and its retries."""

    seconds: int = Field(
        default=60, ge=0, le=900, description="Seconds of buffering, at most, before a call."
    )
    mib: float = Field(
        default=1,
        ge=MIN_FUNCTION_MIB,
        le=MAX_FUNCTION_MIB,
        description="MiB of records, at most, in one call.",
    )
    retries: int = Field(default=3, ge=0, le=300, description="Retries of a failed call.")


class StreamSettings(Section):
    """Settings of one Firehose stream."""

    buffer: Buffer = Field(default_factory=Buffer)
    function: Function = Field(default_factory=Function)
    retry_seconds: int = Field(
        default=300,
        ge=0,
        le=7200,
        description="Seconds that Firehose retries an append before it writes the rows to S3 as"
        " failed.",
    )
    mib_per_second: int = Field(
        default=1, ge=1, le=1000, description="Expected peak throughput of the stream, in MiB/s."
    )


class Domain(StreamSettings):
    """Settings of a domain's stream."""

    route: Annotated[str, AfterValidator(_check_route)] | None = Field(
        default=None,
        description="jq 1.6 query that returns the changelog of each row that the function decodes:"
        " one object with `destinationDatabaseName` and `destinationTableName`. Without it, the"
        " function routes its rows.",
    )


class Firehose(StreamSettings):
    """Delivery by Firehose: settings of all streams, and domains of tables that share a stream."""

    error_prefix: Annotated[str, AfterValidator(_check_prefix)] = Field(
        default="firehose",
        description="Folder for failed records, in the bucket for state. Do not change it while it"
        " has records.",
    )
    account_streams: int = Field(
        default=STREAMS_PER_REGION,
        ge=1,
        description="Number of further streams that the account may have in the region.",
    )
    domains: dict[Annotated[str, AfterValidator(_check_domain)], Domain] = Field(
        default_factory=dict,
        description="Streams over a topic that several tables share. Each may override the settings"
        " above; tables name their domain as `domain:`.",
    )


def settings_of(section: Mapping[str, Any], domain: str | None) -> Domain:
    """Return the settings of a domain's stream, or (None) of a stream with a single table.

    `section` is `firehose:` as written in the file; raises pydantic's ValidationError if it is
    invalid.
    """
    own = section.get("domains", {}).get(domain, {}) if domain else {}
    return Domain.model_validate(with_settings_of_all(section, own))


def with_settings_of_all(section: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stream's own settings merged over those of `section` (`firehose:`)."""
    merged = {key: value for key, value in section.items() if key in StreamSettings.model_fields}
    for key, value in own.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged
