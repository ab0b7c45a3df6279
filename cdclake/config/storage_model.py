"""Model of `aws: storage:`: S3 storage classes where they neither hide nor lose a file.

Only classes whose objects can be read at once are possible: Iceberg's metadata refers to files of
any age. Limits of single values are those of S3; `checks.storage_classes` checks combinations.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from cdclake.config.problems import Refused
from cdclake.config.section import Section

# Days that S3 bills at least for an object in the class, however early it is deleted.
BILLED_DAYS = {"standard_ia": 30, "glacier_ir": 90}
ARCHIVES = ("glacier", "deep_archive")
_AGES = ("expire_days", "expiration", "expiration_days", "days")
_KEEP = "write `intelligent_tiering` or `standard`"


def _check_warehouse(value: object) -> object:
    if isinstance(value, dict):
        raise Refused(
            "files of the warehouse cannot be moved or deleted by age: Iceberg's metadata refers to"
            " live files of any age, and a table with a deleted file cannot be read",
            f"{_KEEP}; `schedules: maintain` deletes the files that no snapshot needs",
        )
    if value in (*ARCHIVES, "archive"):
        raise Refused(
            f"`{value}` is an archive: its objects cannot be read until they are restored, and"
            " queries of a table with such a file would fail",
            _KEEP,
        )
    if value in (*BILLED_DAYS, "onezone_ia"):
        days = BILLED_DAYS.get(str(value), BILLED_DAYS["standard_ia"])
        raise Refused(
            f"`{value}` bills a file for {days} days and for every read: compaction deletes files"
            " earlier, and reads all of a partition",
            _KEEP,
        )
    return value


class Tiers(Section):
    """Ages, in days, of objects that move to cheaper classes, which can still be read at once.

    S3 moves no object below 128 KB.
    """

    standard_ia: int | None = Field(
        default=None, ge=30, le=3650, description="Days until Standard-IA; S3 allows 30 or more."
    )
    glacier_ir: int | None = Field(
        default=None, ge=1, le=3650, description="Days until Glacier Instant Retrieval."
    )

    @model_validator(mode="before")
    @classmethod
    def _can_be_read(cls, value: Any) -> Any:
        for key in value if isinstance(value, dict) else ():
            if key in ARCHIVES:
                raise Refused(
                    f"`{key}` is an archive: `cdclake redrive` and queries of these objects would"
                    " fail until they are restored",
                    "use `glacier_ir`, which can be read at once",
                )
            if key == "onezone_ia":
                raise Refused(
                    "`onezone_ia` keeps the only copy of a record in one availability zone",
                    "use `standard_ia`",
                )
            if key in _AGES:
                raise Refused(
                    f"`{key}` is not set here",
                    "write `aws: failed_days` for failed records, `aws: log_days` for logs",
                )
        return value


class StorageClasses(Section):
    """Storage classes of the buckets; by default everything stays in S3 Standard."""

    warehouse: Annotated[
        Literal["standard", "intelligent_tiering"], BeforeValidator(_check_warehouse)
    ] = Field(
        default="standard",
        description="Files of the tables. intelligent_tiering: S3 moves files of 128 KB or more"
        " that are not read to cheaper tiers, without delay or charge for reads; it bills"
        " monitoring by file. Neither expiration nor an archive is possible: live files would be"
        " lost or unreadable.",
    )
    failed: Tiers = Field(
        default_factory=Tiers,
        description="Failed records, which are deleted after `failed_days`.",
    )
    access_log: Tiers = Field(
        default_factory=Tiers,
        description="S3 access logs of the buckets, which are deleted after `log_days`.",
    )
