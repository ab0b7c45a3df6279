"""`cdclake init`: write a pipeline file from an existing database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.cli.output import SOURCE_DSN_KEY, JsonOption, emit, say
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.postgres.proposal import Proposal
    from cdclake.postgres.refusal import Refusal


def init(
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
    from_db: Annotated[
        str | None,
        typer.Option(
            "--from-db",
            help="DSN of the database to read; better in the environment variable"
            " CDCLAKE_SOURCE_DSN, since other users see arguments.",
        ),
    ] = None,
    schema: Annotated[
        list[str] | None, typer.Option("--schema", help="Include only this schema; repeatable.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json_output: JsonOption = False,
) -> None:
    """Write a pipeline file with every table of a database that can be streamed."""
    from cdclake.local.lake.introspect import server_problems, survey
    from cdclake.local.lake.source_tls import secured
    from cdclake.postgres.pipeline_text import render_pipeline

    if output.exists() and not force:
        raise InputError(
            f"{output} already exists", "choose another file with `-o`, or add `--force`"
        )
    dsn = secured(_dsn(from_db))
    database, proposals = survey(dsn, schema or None)
    problems = server_problems(dsn)
    try:
        output.write_text(render_pipeline(database, proposals), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {output}: {error.strerror}", "check its folder and your permissions"
        ) from None
    summary = _summary(output, proposals) | {"warnings": _warnings(problems)}
    emit(summary, json_output, lambda: _render(output, proposals, summary["warnings"]))


def _warnings(problems: list[Refusal]) -> list[dict[str, str]]:
    return [{"message": str(problem), "remedy": problem.remedy} for problem in problems]


def _dsn(given: str | None) -> str:
    dsn = given or os.environ.get(SOURCE_DSN_KEY)
    if not dsn:
        raise InputError(
            "no database to read",
            f"set {SOURCE_DSN_KEY} to its DSN, or use --from-db",
        )
    return dsn


def _summary(output: Path, proposals: list[Proposal]) -> dict[str, Any]:
    tables = [
        {
            "source": proposal.source.source,
            "table": declared.name,
            "key": [column.source for column in declared.key_columns],
            "columns": [column.source for column in declared.columns],
            "omitted_columns": list(proposal.omitted),
        }
        for proposal in proposals
        if (declared := proposal.declared) is not None and not proposal.reason
    ]
    refused = [
        {
            "source": proposal.source.source,
            "reason": proposal.reason,
            "admissible": proposal.declared is not None,
            "remedy": proposal.remedy or f"remove the `# ` before its lines in {output}",
        }
        for proposal in proposals
        if proposal.reason
    ]
    return {"ok": True, "file": str(output), "tables": tables, "refused": refused}


def _render(output: Path, proposals: list[Proposal], warnings: list[dict[str, str]]) -> None:
    refused = [proposal for proposal in proposals if proposal.reason]
    say(f"{output}: {len(proposals) - len(refused)} tables, {len(refused)} refused")
    for proposal in refused:
        say(f"  {proposal.source.source}: {proposal.reason}")
    if refused:
        say("The refused tables are comments in the file, with what admits each.")
    for warning in warnings:
        say(f"warning: {warning['message']}; {warning['remedy']}")
    say(f"Review the file, then run: cdclake up {output}")
