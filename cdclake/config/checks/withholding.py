"""Rules with `on: quarantine` that would leave rows of mixed values in the lake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config import literals
from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline, try_parse
from cdclake.config.problems import Problem, Refused

_OR_WARN = "or write `on: warn`"


def check_withholding(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse rules with `on: quarantine` that would withhold rows wrongly."""
    for table in tables:
        rules = table.entry.get("checks")
        for number, rule in enumerate(rules if isinstance(rules, list) else ()):
            if not isinstance(rule, dict) or rule.get("on") != "quarantine":
                continue
            try:
                _check_rows(table)
            except Refused as refused:
                at = (*table.location, "checks", number)
                yield document.problem(at, refused.message, refused.remedy)


def _check_rows(table: TableOutline) -> None:
    """Refuse rules of a table whose updates may leave out values.

    Such an update that follows a withheld one would get the value from before the withheld one, so
    that the lake showed a row that the source never had. Polls read whole rows.
    """
    capture = table.entry.get("capture")
    if isinstance(capture, dict) and "poll" in capture:
        return
    spelling = table.entry.get("replica_identity")
    identity = try_parse(literals.parse_replica_identity, spelling)
    if identity is not None and identity.kind == "full":
        return
    key = {name for _, name in table.key}
    for column in table.columns:
        is_left_out = not column.excluded and column.type is not None and column.type.toastable
        if is_left_out and column.source not in key:
            raise Refused(
                f"updates of {table.spelled!r} may leave out {column.source!r} as unchanged, and"
                " after a withheld update its value would be one that the row no longer had",
                f"under {table.spelled} write `replica_identity: full`, {_OR_WARN}",
            )
