"""The literal bound of a `<t>_current` in the Glue catalog, replaced without running a statement.

`cdclake views --target aws` creates the view. Its text is replaced only as it was read: a version
that another writer has made since fails the update, and that writer's text stays.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cdclake.iceberg.stored_view import bound_of, lateness_of, with_bound

log = logging.getLogger("cdclake.views")

# Do not wait longer: a batch of the stream does, too, and the next try follows.
_QUICK = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
# Of GetTable's answer, what UpdateTable takes.
_INPUT = (
    *("Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys"),
    *("ViewOriginalText", "ViewExpandedText", "TableType", "Parameters"),
)
# From the present bound, the view's lateness (both in microseconds) and the time of its last
# change: the next bound, or None to keep the view.
Choose = Callable[[int, int, datetime], int | None]


class CatalogViews:
    """Stored views of the Glue catalog."""

    def __init__(self) -> None:
        self._glue: Any = None
        self._connecting = threading.Lock()

    def replace_bound(self, database: str, name: str, choose: Choose) -> int | None:
        """Replace the view's bound by what `choose` returns; return it, or None if none changed.

        Views without a literal bound are left as they are. An error of AWS is only logged: the old
        bound is right.
        """
        try:
            return self._replace(database, name, choose)
        except (ClientError, BotoCoreError) as error:
            if not _is_missing(error):
                log.warning("%s: cannot renew the view's bound: %s", name, error)
            return None

    def _connected(self) -> Any:
        """Return the client. Creating it may fail, without a region or credentials."""
        with self._connecting:
            if self._glue is None:
                self._glue = boto3.client("glue", config=_QUICK)
            return self._glue

    def _replace(self, database: str, name: str, choose: Choose) -> int | None:
        glue = self._connected()
        view = glue.get_table(DatabaseName=database, Name=name)["Table"]
        text = view.get("ViewOriginalText", "")
        bound, lateness = bound_of(text), lateness_of(text)
        if bound is None or lateness is None:
            return None
        chosen = choose(bound, lateness, view.get("UpdateTime", view["CreateTime"]))
        if chosen is None:
            return None
        kept = {field: view[field] for field in _INPUT if field in view}
        glue.update_table(
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
