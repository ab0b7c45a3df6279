"""The literal bound of a `<t>_current` in the Glue catalog, replaced without running a statement.

`cdclake views --target aws` creates the view. Its text is replaced only as it was read: a version
that another writer has made since fails the update, and that writer's text stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cdclake.iceberg.stored_view import bound_of, with_bound

log = logging.getLogger("cdclake.views")

# Of GetTable's answer, what UpdateTable takes.
_INPUT = (
    *("Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys"),
    *("ViewOriginalText", "ViewExpandedText", "TableType", "Parameters"),
)


class CatalogViews:
    """Stored views of the Glue catalog."""

    def __init__(self) -> None:
        self._glue: Any = boto3.client("glue")

    def replace_bound(
        self, database: str, name: str, choose: Callable[[int, datetime], int | None]
    ) -> int | None:
        """Replace the view's bound by what `choose` returns; return it, or None if none changed.

        `choose` gets the bound and the time of the view's last change. Views without a literal
        bound are left as they are. An error of AWS is only logged: the old bound is right.
        """
        try:
            return self._replace(database, name, choose)
        except (ClientError, BotoCoreError) as error:
            if not _is_missing(error):
                log.warning("%s: cannot renew the view's bound: %s", name, error)
            return None

    def _replace(
        self, database: str, name: str, choose: Callable[[int, datetime], int | None]
    ) -> int | None:
        view = self._glue.get_table(DatabaseName=database, Name=name)["Table"]
        text = view.get("ViewOriginalText", "")
        bound = bound_of(text)
        changed_at = view.get("UpdateTime", view["CreateTime"])
        chosen = None if bound is None else choose(bound, changed_at)
        if chosen is None:
            return None
        kept = {field: view[field] for field in _INPUT if field in view}
        self._glue.update_table(
            DatabaseName=database,
            TableInput={**kept, "ViewOriginalText": with_bound(text, chosen)},
            VersionId=view["VersionId"],
            SkipArchive=True,
        )
        log.info("%s: renewed the view's bound", name)
        return chosen


def _is_missing(error: Exception) -> bool:
    return (
        isinstance(error, ClientError)
        and error.response["Error"]["Code"] == "EntityNotFoundException"
    )
