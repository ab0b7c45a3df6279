"""Model of `weblogs:`: web servers whose requests Firehose writes into separate tables."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from cdclake.config.firehose_model import StreamSettings
from cdclake.config.problems import Refused, check_distinct
from cdclake.config.section import Section
from cdclake.web_logs.model import BUILD

_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
_IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64}")
USUAL_STATUSES = (200, 301, 302, 304, 400, 403, 404, 500)


def _check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise Refused(
            f"invalid web logs name {name!r}",
            "use 1 to 30 lowercase letters, digits and underscores, starting with a letter",
        )
    return name


def _check_status(status: Any) -> Any:
    if type(status) is not int or not 100 <= status <= 599:
        raise Refused(f"invalid HTTP status {status!r}", "use whole numbers from 100 to 599")
    return status


def _check_image(image: str) -> str:
    if image != BUILD and _IMAGE.fullmatch(image) is None:
        raise Refused(
            f"the image {image!r} has no digest",
            "write `registry/name:tag@sha256:...`, since a tag alone can move to another image, or"
            f" `{BUILD}`",
        )
    return image


WebLogsName = Annotated[str, AfterValidator(_check_name)]
Image = Annotated[str, AfterValidator(_check_image)]
Status = Annotated[int, AfterValidator(_check_status)]


class Images(Section):
    """Container images to run on AWS, or `build` for both; a local lake runs neither.

    An image is written with its digest, or as `build`: then `cdk deploy` builds it with Docker.
    """

    nginx: Image | None = Field(
        default=None, description="Web server, which logs in the format `combined`."
    )
    router: Image | None = Field(
        default=None,
        description="Fluent Bit for FireLens, AWS's `init` variant, which reads files from S3.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value != BUILD:
                raise Refused(
                    f"`images` cannot be {value!r}",
                    f"write `{BUILD}`, or `nginx:` and `router:` with their digests",
                )
            return dict.fromkeys(cls.model_fields, BUILD)
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "const": BUILD}, handler(core_schema)]}


class WebLogsEntry(StreamSettings):
    """Web server: delivery of its requests, and the tables that they are routed to."""

    source: Literal["direct_put", "kinesis"] = Field(
        default="direct_put",
        description="direct_put: Fluent Bit sends to Firehose. kinesis: Fluent Bit sends to a"
        " Kinesis stream, which Firehose and others can read. Must not change once deployed:"
        " declare a second entry instead, move the traffic, then remove the first.",
    )
    route: Literal["status", "day"] = Field(
        default="status",
        description="status: one table per listed status, and one for all others. day: a single"
        " table. All are partitioned by the day of the request.",
    )
    statuses: Annotated[list[Status], AfterValidator(check_distinct)] = Field(
        default_factory=lambda: [*USUAL_STATUSES],
        json_schema_extra={"default": [*USUAL_STATUSES]},
        min_length=1,
        max_length=100,
        description="With `route: status`: the statuses with a separate table.",
    )
    images: Images = Field(
        default_factory=Images,
        description="Images to run on AWS: `build`, so that `cdk deploy` builds both with Docker,"
        " or each by its digest or as `build`.",
    )
