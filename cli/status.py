"""`cdclake status`: what runs, and how far each table is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.output import emit, say


def status(
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show components, tables and the replication slot."""
    from cdclake.errors import NotRunning
    from local.home import Home
    from local.status import lake_status

    home = Home.from_environment()
    answer = lake_status(home)
    if not answer["components"]:
        raise NotRunning(f"no lake runs in {home.path}", "start one with `cdclake up FILE`")
    emit(answer, json_output, lambda: _render(answer))


def _render(answer: dict[str, Any]) -> None:
    for part in answer["components"]:
        say(f"{part['name']:<11} {part['state']:<9} pid {part['pid']}  port {part['port']}")
    for table in answer["tables"]:
        say(
            f"{table['table']:<20} {table['state']:<10} {table['live_rows']} live rows, "
            f"{table['changes_rows']} changes, lag {table['lag_events']}, "
            f"freshness {table['freshness_s']} s, {table['quarantined']} quarantined"
            + (f"\n  {table['last_error']}" if table["last_error"] else "")
        )
    if answer["slot"]:
        say(f"slot holds {answer['slot']['wal_bytes']} bytes of WAL")
