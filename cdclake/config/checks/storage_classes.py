"""Checks of storage classes whose minimum bill outlasts the objects in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from cdclake.config.aws_model import Aws
from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.storage_model import BILLED_DAYS

# Part of `storage:` and the setting after which its objects are deleted.
_DELETED_AFTER = {"failed": "failed_days", "access_log": "log_days"}


def check_storage_classes(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse objects that are deleted, or moved on, before their class has been paid off."""
    del tables
    for part, setting in _DELETED_AFTER.items():
        declared = document.mapping("aws", "storage", part)
        steps = [(tier, declared[tier]) for tier in BILLED_DAYS if tier in declared]
        deleted = document.get("aws", setting)
        steps.append((setting, Aws.model_fields[setting].default if deleted is None else deleted))
        if not all(type(days) is int for _, days in steps):
            continue
        for (tier, days), (following, end) in pairwise(steps):
            billed = BILLED_DAYS[tier]
            if end - days < billed:
                yield document.problem(
                    ("aws", "storage", part, tier),
                    f"S3 bills {billed} days in `{tier}`, but objects that enter it after {days}"
                    f" days leave it after {end} (`{following}`)",
                    f"write `{following}: {days + billed}` or more, or remove `{tier}`",
                )
