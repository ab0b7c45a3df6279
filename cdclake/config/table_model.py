"""Model of one entry under `tables:`; its descriptions become the JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from cdclake.config import literals, partition
from cdclake.config.lake_name import LakeName
from cdclake.config.poll_model import LOG, Capture, polls_or_none
from cdclake.config.problems import Refused
from cdclake.config.publish_model import PublishEntry
from cdclake.config.quality_model import RuleEntry
from cdclake.config.section import Section
from cdclake.masks import can_mask, maskable_types


def _check_type(spelling: str) -> str:
    literals.parse_column_type(spelling)
    return spelling


def _check_mask(spelling: str) -> str:
    literals.parse_mask(spelling)
    return spelling


def _check_replica_identity(spelling: str) -> str:
    literals.parse_replica_identity(spelling)
    return spelling


def _check_transform(spelling: str) -> str:
    partition.parse_transform(spelling)
    return spelling


def _listed(names: Any) -> Any:
    return [names] if isinstance(names, str) else names


TypeSpelling = Annotated[str, AfterValidator(_check_type)]
Transform = Annotated[str, AfterValidator(_check_transform)]


_NAME_OR_NAMES = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


class ColumnEntry(Section):
    """Column: its PostgreSQL type, or a mapping with the type and further settings."""

    type: TypeSpelling | None = Field(
        default=None,
        description="PostgreSQL type; `enum` for an enum, the base type for a domain.",
        examples=["bigint", "numeric(12,2)", "timestamptz", "text[]", "enum"],
    )
    exclude: bool = Field(
        default=False,
        description="Do not replicate this column. From the next `up` or deployment on, the"
        " publication omits it.",
    )
    mask: Annotated[str, AfterValidator(_check_mask)] | None = Field(
        default=None,
        description="`hash`, `token`, `truncate(n)`, `redact`, `month` or `null`; masked in the"
        " connector, before Kafka.",
        json_schema_extra={
            "pattern": r"^\s*(hash|token|redact|month|null"
            r"|truncate\s*\(\s*[1-9][0-9]{0,8}\s*\))\s*$"
        },
    )

    renamed_from: Annotated[list[str], BeforeValidator(_listed), WithJsonSchema(_NAME_OR_NAMES)] = (
        Field(
            default_factory=list,
            description="Earlier names in the source, oldest first; the lake keeps the oldest.",
            examples=["email", ["mail", "email"]],
        )
    )

    @model_validator(mode="before")
    @classmethod
    def _from_type(cls, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return {"type": value}
        if not isinstance(value, dict):
            raise Refused(
                "a column must be its type, or a mapping with the type",
                "write `column: bigint`, or `column: {type: text, mask: hash}`",
            )
        if "mask" in value and value["mask"] is None:
            return {**value, "mask": "null"}  # YAML's null, which must not mean clear text
        return value

    @model_validator(mode="after")
    def _check(self) -> ColumnEntry:
        if self.type is None and not self.exclude:
            raise Refused("the column has no type", "add `type:`, or `exclude: true`")
        if self.exclude and self.renamed_from:
            raise Refused("the column is excluded and renamed", "remove `renamed_from`")
        if self.mask is None:
            return self
        if self.exclude:
            raise Refused("the column is excluded and masked", "remove `exclude` or `mask`")
        if self.type is not None:
            parsed, mask = literals.parse_column_type(self.type), literals.parse_mask(self.mask)
            if not can_mask(mask.kind, parsed):
                raise Refused(
                    f"a {parsed} column cannot have `mask: {self.mask}`",
                    f"`{mask.kind}` masks {maskable_types(mask.kind)}; write `mask: null` for"
                    " NULLs, or `exclude: true`",
                )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        mapping = handler.resolve_ref_schema(handler(core_schema))
        mapping.pop("title", None)
        mapping["properties"]["type"] = {
            "type": "string",
            **{k: v for k, v in mapping["properties"]["type"].items() if k in _SHOWN},
        }
        text = {"type": "string", "description": "PostgreSQL type of the column."}
        description = mapping.pop("description")
        return {"title": "Column", "description": description, "anyOf": [text, mapping]}


_SHOWN = ("description", "examples")


class Maintenance(Section):
    """Maintainer of the table, or a mapping with the settings of cdclake's own job."""

    by: Literal["own", "glue", "none"] = Field(
        default="own",
        description="Compaction and expiration: by cdclake's job, by Glue's optimizers, or none.",
    )
    sort_by: list[str] = Field(
        default_factory=list,
        description="Columns that compaction sorts the state by, so that readers skip files.",
        examples=[["created_at"]],
    )

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        return {"by": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Maintenance:
        if self.sort_by and self.by != "own":
            raise Refused(
                "only cdclake's own maintenance sorts", "remove `sort_by`, or write `by: own`"
            )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        mapping = handler(core_schema)
        word = handler.resolve_ref_schema(mapping)["properties"]["by"]
        return {"anyOf": [{"type": "string", "enum": word["enum"]}, mapping]}


class TableEntry(Section):
    """Source table, by its exact name, and its tables in the lake."""

    name: LakeName | None = Field(
        default=None,
        examples=["orders"],
        description="Name in the lake; default: the source's name in lowercase; fixed once the"
        " table exists.",
    )
    key: list[str] = Field(
        min_length=1,
        description="Columns that identify a row: the primary key, or, with `replica_identity:"
        " full`, other columns that are unique together; fixed once the table exists.",
    )
    columns: dict[str, ColumnEntry] = Field(
        min_length=1,
        description="Every column that is copied to the lake, by its exact name in the source.",
    )
    capture: Annotated[Capture | None, BeforeValidator(polls_or_none)] = Field(
        default=None,
        description="How changes are found. log: Debezium reads them from the WAL. With `poll`:"
        " queries on a schedule, for tables that cannot be replicated logically.",
        examples=[LOG, {"poll": {"by": "last_update", "every": "rate(15 minutes)"}}],
        json_schema_extra={"default": LOG},
    )
    delivery: Literal["stream", "firehose"] = Field(
        default="stream",
        description="Writer of the changelog: the Glue streaming job, or Firehose; fixed once the"
        " table exists.",
    )
    domain: str | None = Field(
        default=None,
        description="With `delivery: firehose`: the domain whose stream and topic the table shares;"
        " default: its own stream and topic; fixed once the table exists.",
    )
    apply: Literal["each_batch", "scheduled"] | None = Field(
        default=None,
        description="When changes are applied to the state table. Default: `each_batch`; with"
        " `delivery: firehose` `scheduled`.",
    )
    state_freshness: int = Field(
        default=60,
        ge=5,
        le=86_400,
        description="Seconds that the state may lag behind the changelog while events arrive;"
        " `<t>_current` is as fresh as the changelog at any time.",
    )
    replica_identity: Annotated[str, AfterValidator(_check_replica_identity)] | None = Field(
        default=None,
        description="Required replica identity of the source: `default`, `full` or `index NAME`.",
        examples=["default", "full", "index orders_number_idx"],
    )
    partition_by: list[Transform] = Field(
        default_factory=list,
        description="Iceberg partition transforms over declared columns; fixed once the table"
        " exists.",
        examples=[["month(created_at)", "bucket(16, customer_id)"]],
    )
    maintenance: Maintenance = Field(
        default_factory=Maintenance,
        description="Compaction and expiration: by cdclake's job (`own`), by Glue's optimizers"
        " (`glue`), or `none`; or a mapping with `sort_by`.",
        examples=["own", {"sort_by": ["created_at"]}],
    )
    deletes: Literal["hard", "soft"] = Field(
        default="hard",
        description="hard: a tombstone, purged when safe. soft: keeps the last values, marked."
        " Fixed once the table exists.",
    )
    checks: list[RuleEntry] = Field(
        default_factory=list,
        description="Quality rules, checked by the job `check_tables` on `schedules: checks`.",
    )
    publish: list[PublishEntry] = Field(
        default_factory=list,
        description="Copies of the table in another format, kept up to date on a schedule.",
    )
    shard: int = Field(
        default=1,
        ge=1,
        le=99,
        description="On AWS, the number of the stack that holds the table. Must never change.",
    )
