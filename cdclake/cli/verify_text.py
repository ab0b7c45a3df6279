"""Text of the report of `cdclake verify`: what differs, and the totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cdclake.cli.aligned import aligned, counted, number
from cdclake.cli.table_answers import listed
from cdclake.delivery_remedies import read_again, repair_refused
from cdclake.errors import ComponentFailed

_KINDS = ("missing", "extra", "different", "unsettled", "withheld", "incomplete")
_NAMES = ("table", "result", "source rows", "lake rows", *_KINDS, "quarantined")
_DEEP_KINDS = {
    "missing": "rows of the changelog are missing in {table}",
    "extra": "rows of {table} have no event in the changelog",
    "different": "rows of {table} differ from the changelog",
    "doubled_rows": "keys are in {table} more than once",
    "doubled_events": "events are in {table}_changes more than once",
    "history_missing": "rows of {table} have no event in {table}_history",
    "history_different": "rows of {table} differ from their event in {table}_history",
}

Line = Mapping[str, Any]


def verify_lines(report: Line, verbose: bool, options: str = "") -> Iterator[str]:
    """Yield the tables that deviate, with `verbose` all, their first differences, and totals.

    `options` are those that commands need for this lake.
    """
    tables = report["tables"]
    shown = tables if verbose else [table for table in tables if _deviates(table)]
    if shown:
        rows = [_row(table) for table in shown]
        if len(tables) > 1:
            rows.append(_total_row(tables))
        yield from aligned(_NAMES, rows, _NAMES[2:])
    for table in shown:
        yield from _notes(table, verbose, options)
    for logs in report.get("web_logs", ()):
        yield (
            f"web logs {logs['web_logs']}: {sum(logs['rows'].values())} requests,"
            f" {logs['failed']} failed, {logs['missing']} missing"
        )
    for put in report.get("puts", ()):
        yield (
            f"put table {put['puts']}: {sum(put['rows'].values())} rows,{_dropped(put)}"
            f" {put['failed']} failed, {put['missing']} missing"
        )
    yield _result(report)


def _dropped(put: Line) -> str:
    return f" {put['dropped']} dropped," if put["dropped"] else ""


def differs(table: Line) -> bool:
    """Return True if a difference was found in the table; a stopped table counts as one."""
    deep = table.get("deep")
    return bool(
        any(table[kind] for kind in ("missing", "extra", "different"))
        or table["state"] == "stopped"
        or (deep and any(deep[kind] for kind in _DEEP_KINDS))
    )


def lateness(report: Line, remedy: str) -> ComponentFailed | None:
    """Return the failure of a report without a difference: the changes of tables are late."""
    tables = report["tables"]
    put = [*report.get("web_logs", ()), *report.get("puts", ())]
    late = list(dict.fromkeys(table["table"] for table in tables if table.get("late")))
    is_other = any(differs(table) or (table["error"] and not table.get("late")) for table in tables)
    if not late or is_other or any(each["missing"] for each in put):
        return None
    return ComponentFailed(f"changes of {listed(late)} did not arrive", remedy)


def _deviates(table: Line) -> bool:
    return bool(
        differs(table)
        or any(table.get(kind) for kind in _KINDS)
        or table["error"]
        or table.get("quarantined")
    )


def _row(table: Line) -> list[str]:
    counts = [table["source_rows"], table["lake_rows"], *(table.get(kind) or 0 for kind in _KINDS)]
    counts.append(table.get("quarantined", 0))
    return [table["table"], _word(table), *(number(count) for count in counts)]


def _word(table: Line) -> str:
    if table["state"] == "stopped":
        return "STOPPED"
    if table["error"]:  # such as a table that is late: it may lack rows that have not arrived
        return "error"
    is_different = any(table[kind] for kind in ("missing", "extra", "different"))
    return "DIFFERENT" if is_different else "equal"


def _total_row(tables: Sequence[Line]) -> list[str]:
    names = ("source_rows", "lake_rows", *_KINDS, "quarantined")
    sums = [sum(table.get(name) or 0 for table in tables) for name in names]
    return [f"all {len(tables)} tables", "", *map(number, sums)]


def _notes(table: Line, verbose: bool, options: str) -> Iterator[str]:
    name = table["table"]
    if table["error"]:
        yield f"{name}: {table['error']}"
    if table.get("quarantined"):
        delivery = table.get("delivery", "stream")  # an older job does not name it
        repair = repair_refused(name, delivery, options=options)
        if delivery == "stream":
            repair += f"; if it refuses them, {read_again(name, delivery, options=options)}"
        yield f"{name}: {counted(table['quarantined'], 'event')} in the quarantine: {repair}"
    if verbose and table["omitted_columns"]:
        yield f"{name}: without {', '.join(table['omitted_columns'])}"
    for example in table["first"]:
        yield f"{name}: {example['kind']} {_key(example)}"
        if example["source"] is not None and example["lake"] is not None:
            for column in example["columns"]:
                source, lake = example["source"][column], example["lake"][column]
                yield f"    {column}: source {source!r}, lake {lake!r}"
    if table.get("deep"):
        yield from _deep(name, table["deep"])


def _deep(table: str, deep: Line) -> Iterator[str]:
    for kind, text in _DEEP_KINDS.items():
        if deep[kind]:
            yield f"  {deep[kind]} {text.format(table=table)}"
    for finding in deep["first"]:
        columns = f": {', '.join(finding['columns'])}" if finding["columns"] else ""
        yield f"  {finding['kind']} {_key(finding)}{columns}"


def _key(example: Line) -> str:
    return ", ".join(f"{name}={value}" for name, value in example["key"].items())


def _result(report: Line) -> str:
    tables = report["tables"]
    rows = sum(table["source_rows"] or 0 for table in tables)
    compared = f"{counted(len(tables), 'table')}, {counted(rows, 'row')} in the source"
    sample = report["sample"]
    part = f" (a sample of about {sample} rows per table)" if sample else ""
    result = "equal" if report["ok"] else "NOT equal"
    if report["ok"] and any(table.get("incomplete") for table in tables):
        result = "equal except for incomplete rows"
    reader = report.get("reader", "duckdb")  # an older job does not name it
    by = "" if reader == "duckdb" else f" in {reader}"
    rounds = counted(report["rounds"], "further reading")
    again = f" and {rounds} of what had changed" if report["rounds"] else ""
    return f"{result}{by}: {compared}{part}, compared in {report['seconds']} s{again}"
