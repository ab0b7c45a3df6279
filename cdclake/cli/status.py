"""`cdclake status`: components, the position of each table, and the slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)

_UNKNOWN = "-"


def status(
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show the components, the tables and the replication slot.

    Exit with 0 if the lake is healthy, 1 if something needs attention (a table is stopped, differs
    from the source or has quarantined events, a component is starting), and 4 if a component is
    down. A figure that is not known is shown as `-`. With --target aws also the alarms that are
    on; lag and freshness are those of the whole stream.
    """
    if target is Target.AWS:
        _status_deployed(deployed_file(file), environment, json_output)
        return
    check_local(file, environment)
    from cdclake.errors import NotRunning
    from cdclake.local.health import EXIT_CODES
    from cdclake.local.process.home import Home
    from cdclake.local.status import lake_status

    home = Home.from_environment()
    answer = lake_status(home)
    if not answer["components"]:
        raise NotRunning(f"no lake is running in {home.path}", "start one with `cdclake up FILE`")
    emit(answer, json_output, lambda: _render(answer))
    if code := EXIT_CODES[answer["health"]]:
        raise typer.Exit(code)


def _status_deployed(file: Path, environment: str | None, json_output: bool) -> None:
    from cdclake.deployed.deployed_lake import DeployedLake
    from cdclake.deployed.deployed_status import deployed_status
    from cdclake.local.health import EXIT_CODES

    answer = deployed_status(DeployedLake(file, environment))
    emit(answer, json_output, lambda: _render_deployed(answer))
    if code := EXIT_CODES[answer["health"]]:
        raise typer.Exit(code)


def _render_deployed(answer: dict[str, Any]) -> None:
    lag, freshness = _shown(answer["lag_events"]), _shown(answer["freshness_s"])
    say(f"{_health(answer)}; largest lag {lag} records, freshness {freshness} s")
    for line in answer["attention"]:
        say(f"  {line}")
    for part in answer["components"]:
        say(f"{part['name']:<11} {part['state']:<10} log {part['log']}")
    for table in answer["tables"]:
        say(
            f"{table['table']:<20} {table['state']:<10} {_shown(table['state_rows'])} rows,"
            f" {_shown(table['changes_rows'])} changes, {table['quarantined']} quarantined,"
            f" verified {_verified(table['last_verified'])}"
        )
    if answer["slot"]:
        say(f"the slot retains {_shown(answer['slot']['wal_bytes'])} bytes of WAL")


def _health(answer: dict[str, Any]) -> str:
    paused = ", paused: `cdclake resume` goes on" if answer.get("paused") else ""
    return f"{answer['health']}{paused}"


def _verified(last: dict[str, Any] | None) -> str:
    if last is None:
        return "never"
    return f"{'equal' if last['equal'] else 'DIFFERENT'} at {last['at']}"


def _render(answer: dict[str, Any]) -> None:
    say(_health(answer))
    for line in answer["attention"]:
        say(f"  {line}")
    for part in answer["components"]:
        say(
            f"{part['name']:<11} {part['state']:<9} pid {_shown(part['pid'])}"
            f"  port {_shown(part['port'])}"
        )
    for table in answer["tables"]:
        say(_table(table) + (f"\n  {table['last_error']}" if table["last_error"] else ""))
        for line in _notes(table, answer["file"]):
            say(f"  {line}")
    for kind in ("web_logs", "puts"):
        _render_put(answer.get(kind, ()), kind)
    for line in _connectors(answer):
        say(line)
    for job in answer.get("schedules", ()):
        say(f"{job['job']:<20} {job['schedule']}, {_runs(job)}")
    if answer["slot"]:
        say(f"the slot retains {answer['slot']['wal_bytes']} bytes of WAL")
        if answer["slot"].get("failover_problem"):
            say(answer["slot"]["failover_problem"])


def _connectors(answer: dict[str, Any]) -> Iterator[str]:
    for connector in answer.get("connectors", ()):
        tables = ", ".join(connector["tables"])
        yield f"{connector['connector']:<20} {connector['state']:<10} connector of {tables}"
        if connector["last_error"]:
            yield f"  {connector['last_error']}"


def _render_put(figures: Iterable[dict[str, Any]], kind: str) -> None:
    for put in figures:
        counted = ", ".join(f"{table} {rows}" for table, rows in put["rows"].items())
        say(f"{put[kind]:<20} {counted}; {put['waiting']} waiting, {put['failed']} failed")
        if put["last_error"]:
            say(f"  {put['last_error']}")


def _runs(job: dict[str, Any]) -> str:
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
    return _UNKNOWN if value is None else str(value)


def _table(table: dict[str, Any]) -> str:
    names = ("live_rows", "changes_rows", "lag_events", "freshness_s", "quarantined")
    live, changes, lag, freshness, quarantined = (_shown(table[name]) for name in names)
    withheld = f" ({table['withheld']} withheld by rules)" if table["withheld"] else ""
    incomplete = f", {table['incomplete']} incomplete in Athena" if table["incomplete"] else ""
    return (
        f"{table['table']:<20} {table['state']:<10} {live} live rows, {changes} changes, lag {lag},"
        f" freshness {freshness}{'' if freshness == _UNKNOWN else ' s'}, {quarantined} quarantined"
        f"{withheld}{incomplete}"
    )


def _notes(table: dict[str, Any], file: str) -> Iterator[str]:
    """Yield the line to change in the file, the gap, and schema differences from the source."""
    if load := table["loading"]:
        all_read = "; the rows that they replace are removed next"
        yield f"loading: {load['rows']} of about {_shown(load['estimated_rows'])} rows" + (
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
