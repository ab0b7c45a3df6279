"""Text of the answer of `cdclake status`: what needs attention, what deviates, and the totals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cdclake.cli.aligned import UNKNOWN, aligned, counted, number, size
from cdclake.topic_totals import total_of_topics

_NAMES = ("table", "state", "rows", "changes", "lag", "freshness", "quarantined", "verified")
_NUMBERS = ("rows", "changes", "lag", "freshness", "quarantined")
_HEALTHY_STATES = ("streaming", "polling")
_SUMMED = ("live_rows", "changes_rows")

Line = Mapping[str, Any]


def status_lines(answer: Line, verbose: bool) -> Iterator[str]:
    """Yield the text of a local lake's status."""
    yield health_line(answer)
    yield from (f"  {line}" for line in answer["attention"])
    yield from _components(answer["components"], verbose, ("pid", "port"))
    yield from _tables(answer["tables"], verbose)
    for table in answer["tables"]:
        errors = [table["last_error"]] if table["last_error"] else []
        found = [*errors, *_notes(table, answer["file"])]
        notes = (f"{table['table']}: {note}" for note in found)
        yield from (note for note in notes if note not in answer["attention"])
    for kind in ("web_logs", "puts"):
        yield from _puts(answer.get(kind, ()), kind)
    yield from _connectors(answer.get("connectors", ()))
    for job in answer.get("schedules", ()):
        yield f"{job['job']:<20} {job['schedule']}, {_runs(job)}"
    if answer["slot"]:
        yield f"the slot retains {size(answer['slot']['wal_bytes'])} of WAL"
        if answer["slot"].get("failover_problem"):
            yield answer["slot"]["failover_problem"]


def deployed_lines(answer: Line, verbose: bool) -> Iterator[str]:
    """Yield the text of a deployment's status; lag and freshness are those of the whole stream."""
    lag, freshness = _shown(answer["lag_events"]), _shown(answer["freshness_s"])
    yield f"{health_line(answer)}; largest lag {lag} records, freshness {freshness} s"
    yield from (f"  {line}" for line in answer["attention"])
    yield from _components(answer["components"], verbose, ("log",))
    tables = [{**table, "live_rows": table["state_rows"]} for table in answer["tables"]]
    yield from _tables(tables, verbose)
    if answer["slot"]:
        wal = answer["slot"]["wal_bytes"]
        yield f"the slot retains {UNKNOWN if wal is None else size(wal)} of WAL"


def health_line(answer: Line) -> str:
    """Return the health in one line."""
    paused = ", paused: `cdclake resume` goes on" if answer.get("paused") else ""
    return f"{answer['health']}{paused}"


def _components(parts: Sequence[Line], verbose: bool, columns: Sequence[str]) -> Iterator[str]:
    shown = parts if verbose else [part for part in parts if part["state"] != "running"]
    if shown:
        rows = [[p["name"], p["state"], *(_shown(p.get(name)) for name in columns)] for p in shown]
        yield from aligned(["component", "state", *columns], rows)
        yield ""
    if others := [part["name"] for part in parts if part not in shown]:
        yield f"running: {', '.join(others)}"


def _tables(tables: Sequence[Line], verbose: bool) -> Iterator[str]:
    if not tables:
        return
    shown = tables if verbose else [table for table in tables if _deviates(table)]
    total = _total_row(tables)
    rows = [*(_row(table) for table in shown), *([] if len(tables) == len(shown) == 1 else [total])]
    yield from aligned(_NAMES, rows, _NUMBERS)
    if len(shown) < len(tables):
        others = counted(len(tables) - len(shown), "table")
        which = "other " if shown else ""
        yield f"nothing to report of {others.replace(' ', f' {which}', 1)}; -v shows every table"


def _deviates(table: Line) -> bool:
    last = table["last_verified"]
    return bool(
        table["state"] not in _HEALTHY_STATES
        or any(table.get(name) for name in ("lag_events", "quarantined", "last_error", "loading"))
        or table.get("incomplete")
        or any(table.get(name) for name in ("gap", "relation_changes", "source_changes"))
        or (last and not last["equal"])
    )


def _row(table: Line) -> list[str]:
    freshness, held = table["freshness_s"], number(table["quarantined"])
    withheld = f" ({table['withheld']} withheld by rules)" if table.get("withheld") else ""
    lacking = f", {table['incomplete']} incomplete in Athena" if table.get("incomplete") else ""
    return [
        table["table"],
        table["state"],
        *(number(table[name]) for name in (*_SUMMED, "lag_events")),
        UNKNOWN if freshness is None else f"{freshness:.1f} s",
        f"{held}{withheld}{lacking}",
        _verified(table["last_verified"]),
    ]


def _total_row(tables: Sequence[Line]) -> list[str]:
    times = [table["freshness_s"] for table in tables if table["freshness_s"] is not None]
    verified = [table["last_verified"] for table in tables if table["last_verified"]]
    equal = sum(1 for last in verified if last["equal"])
    return [
        f"all {counted(len(tables), 'table')}",
        _states(tables),
        *(number(_sum(tables, name)) for name in _SUMMED),
        number(total_of_topics(tables, "lag_events")),
        f"{max(times):.1f} s" if times else UNKNOWN,
        number(_sum(tables, "quarantined")),
        f"{equal} equal" if len(verified) == equal else f"{len(verified) - equal} DIFFERENT",
    ]


def _states(tables: Sequence[Line]) -> str:
    states = sorted({table["state"] for table in tables})
    return states[0] if len(states) == 1 else f"{len(states)} states"


def _sum(tables: Iterable[Line], name: str) -> int | None:
    """Return the sum of the known figures; None if all are unknown."""
    known = [table[name] for table in tables if table[name] is not None]
    return sum(known) if known else None


def _verified(last: Line | None) -> str:
    if last is None:
        return "never"
    return f"{'equal' if last['equal'] else 'DIFFERENT'} at {last['at']}"


def _connectors(connectors: Iterable[Line]) -> Iterator[str]:
    for connector in connectors:
        tables = ", ".join(connector["tables"])
        yield f"{connector['connector']:<20} {connector['state']:<10} connector of {tables}"
        if connector["last_error"]:
            yield f"  {connector['last_error']}"


def _puts(figures: Iterable[Line], kind: str) -> Iterator[str]:
    for put in figures:
        rows = ", ".join(f"{table} {rows}" for table, rows in put["rows"].items())
        dropped = f", {put['dropped']} dropped" if put["dropped"] else ""
        yield f"{put[kind]:<20} {rows}; {put['waiting']} waiting, {put['failed']} failed{dropped}"
        if put["last_error"]:
            yield f"  {put['last_error']}"


def _runs(job: Line) -> str:
    """Return how the last run of a scheduled job has ended, and when the next one begins."""
    if job["last_run"] is None:
        last = "not run yet"
    elif job["ended_at"] is None:
        last = f"running since {job['last_run']}"
    elif job["exit_code"] is None:
        last = f"last run {job['last_run']} was interrupted"
    else:
        last = f"last run {job['last_run']} ended with {job['exit_code']}"
    return f"{last}, next {job['next_run'] or 'never'}"


def _shown(value: Any) -> str:
    return UNKNOWN if value is None else str(value)


def _notes(table: Line, file: str) -> Iterator[str]:
    """Yield the line to change in the file, the gap, and schema differences."""
    if load := table["loading"]:
        all_read = "; the rows that they replace are removed next"
        yield f"loading: {number(load['rows'])} of about {number(load['estimated_rows'])} rows" + (
            all_read if load["phase"] == "replacing" else ""
        )
    for line in table["lines"]:
        if line is not None:
            yield f"line to change: {file}:{line}"
    if gap := table["gap"]:
        until = (
            f", which Kafka retains at least until {gap['kept_until']}" if gap["kept_until"] else ""
        )
        yield f"its gap holds {gap['events']} events{until}"
    for change in table["relation_changes"] or []:
        yield f"{change['kind']}: {change['message']}; {change['remedy']}"
    for change in table["source_changes"] or []:
        place = f"{file}:{change['line']}: " if change["line"] else ""
        yield f"{place}{change['message']}; {change['remedy']}"
