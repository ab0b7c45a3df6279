"""Shape of `weblogs:`: web servers whose requests Firehose brings into tables of their own."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from cdclake.config.firehose_model import StreamSettings
from cdclake.config.problems import Refused, check_distinct
from cdclake.config.table_model import Section

_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
_IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64}")
USUAL_STATUSES = (200, 301, 302, 304, 400, 403, 404, 500)


def _check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise Refused(
            f"{name!r} is no name of web logs",
            "write 1 to 30 lower-case letters, digits and underscores, a letter first",
        )
    return name


def _check_status(status: Any) -> Any:
    if type(status) is not int or not 100 <= status <= 599:
        raise Refused(f"{status!r} is no status of HTTP", "write whole numbers of 100 to 599")
    return status


def _check_image(image: str) -> str:
    if _IMAGE.fullmatch(image) is None:
        raise Refused(
            f"{image!r} names no image by its digest",
            "write `registry/name:tag@sha256:...`: a tag alone may mean another image tomorrow",
        )
    return image


WebLogsName = Annotated[str, AfterValidator(_check_name)]
Image = Annotated[str, AfterValidator(_check_image)]
Status = Annotated[int, AfterValidator(_check_status)]


class Images(Section):
    """What runs on AWS; a local lake runs neither."""

    nginx: Image | None = Field(
        default=None, description="The web server; it logs in the format `combined`."
    )
    router: Image | None = Field(
        default=None,
        description="Fluent Bit for FireLens, of AWS's kind `init`, which reads files from S3.",
    )


class WebLogsEntry(StreamSettings):
    """One web server: how its requests come, and which tables they go to."""

    source: Literal["direct_put", "kinesis"] = Field(
        default="direct_put",
        description="direct_put: Fluent Bit sends to Firehose. kinesis: to a stream of Kinesis,"
        " which Firehose reads, and others may. Not changed once deployed:"
        " see docs/web-logs.md.",
    )
    route: Literal["status", "day"] = Field(
        default="status",
        description="status: a table for each listed status, and one for all others. day: one"
        " table. All are partitioned by the day of the request.",
    )
    statuses: Annotated[list[Status], AfterValidator(check_distinct)] = Field(
        default_factory=lambda: [*USUAL_STATUSES],
        min_length=1,
        max_length=100,
        description="With `route: status`: those with a table of their own.",
    )
    images: Images = Field(default_factory=Images)
