"""`cdclake init`: write a pipeline file from an existing database, or update one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.aligned import counted
from cdclake.cli.output import (
    SOURCE_DSN_KEY,
    JsonOption,
    emit,
    given_source,
    say,
    say_all,
    warning_lines,
)
from cdclake.errors import CdcError, InputError

if TYPE_CHECKING:
    from cdclake.local.lake.declared_columns import DeclaredColumns
    from cdclake.local.lake.declared_tables import NewTables
    from cdclake.plan import Plan
    from cdclake.postgres.catalog import SourceTable, TableId
    from cdclake.postgres.proposal import Proposal

_GONE = "the source has no such table"
_UPDATE_HELP = (
    "Add the source's new columns to this pipeline file, and the new tables that match its"
    " `policies: new_tables`; keep the rest as it is written."
)


def init(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write.")
    ] = None,
    from_db: Annotated[
        str | None,
        typer.Option(
            "--from-db",
            envvar=SOURCE_DSN_KEY,
            help="DSN of the database to read, better in the environment variable, since other"
            " users see arguments; or `local`: that of the running lake.",
        ),
    ] = None,
    schema: Annotated[
        list[str] | None, typer.Option("--schema", help="Include only this schema; repeatable.")
    ] = None,
    update: Annotated[Path | None, typer.Option("--update", help=_UPDATE_HELP)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json_output: JsonOption = False,
) -> None:
    """Write a pipeline file with every table of a database that can be streamed.

    With --update, add new columns and tables to a pipeline file instead; `exclude: true` keeps a
    column out. Nothing is captured before `up` or a deployment gets the file.
    """
    if update is not None:
        if output is not None or schema or force:
            raise InputError(
                "--update changes one file in place", "leave out -o, --schema and --force"
            )
        _update(update, _dsn(from_db), json_output)
    elif output is None:
        raise InputError("no file to write", "name it with `-o FILE`, or use `--update FILE`")
    else:
        _check_free(output, force=force)
        _write(output, _dsn(from_db), schema or None, json_output)


def _check_free(output: Path, *, force: bool) -> None:
    if output.exists() and not force:
        raise InputError(
            f"{output} already exists", "choose another file with `-o`, or add `--force`"
        )


def _write(output: Path, dsn: str, schemas: list[str] | None, json_output: bool) -> None:
    from cdclake.local.lake.introspect import introspect_tables, server_problems
    from cdclake.local.lake.source_tls import secured
    from cdclake.postgres.pipeline_text import render_pipeline
    from cdclake.postgres.refusal import as_warnings

    dsn = secured(dsn)
    with step("read the database's tables"):
        database, proposals = introspect_tables(dsn, schemas)
        problems = server_problems(dsn)
    _store(output, render_pipeline(database, proposals))
    summary = _summary(output, proposals)
    unusable = [] if summary["tables"] else [_no_table(output, summary["refused"])]
    summary["warnings"] = [*unusable, *as_warnings(problems)]
    emit(summary, json_output, lambda: _render(output, proposals, summary["warnings"]))


def _store(output: Path, text: str) -> None:
    """Write the file; an existing one stays as it is if that fails."""
    from cdclake.config.file_edits import replace_text

    if output.is_file():
        replace_text(output, text, "choose another file with `-o`")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {output}: {error.strerror}", "check its folder and your permissions"
        ) from None


def _no_table(output: Path, refused: list[dict[str, Any]]) -> dict[str, str]:
    """Return the warning of a file that `up` refuses, since it declares no table."""
    remedy = "admit one as its `remedy` in `refused` says, and run `cdclake init --force` again"
    if any(each["admissible"] for each in refused):
        remedy = f"remove the `# ` before the lines of at least one in {output}"
    return {"message": "no table can be streamed as it is", "remedy": remedy}


def _update(file: Path, dsn: str, json_output: bool) -> None:
    from cdclake.config.file_edits import replace_text
    from cdclake.config.resolve import load_file, load_plan
    from cdclake.jobs.runtime.source import source_tables
    from cdclake.local.lake.declared_columns import declare_new_columns
    from cdclake.local.lake.declared_tables import declare_new_tables
    from cdclake.local.lake.source_tls import secured

    dsn, patterns = secured(dsn), load_file(file).policies.new_tables
    before = file.read_bytes().decode("utf-8")
    with step("read the database's new columns"):
        declared = declare_new_columns(dsn, load_plan(file), file)
    plan = load_plan(file)
    try:
        with step("read the database's new tables"):
            new = declare_new_tables(dsn, plan, patterns, file)
        # The columns of polled tables are not added: a poll reads those that are declared.
        source = source_tables(dsn, replace(plan, tables=plan.all_tables))
    except CdcError:  # a failed command adds nothing: its answer would not name the columns
        replace_text(file, before, "remove the added columns yourself")
        raise
    known = [*_updated(plan, declared, source)]
    answer = {
        "ok": True,
        "file": str(file),
        "tables": [*known, *({**_proposed(p), "added_columns": []} for p in new.admitted)],
        "added_tables": [proposal.source.source for proposal in new.admitted],
        "undeclared_tables": list(new.others),
        "refused": [*_not_added(plan, declared, new, source)],
    }
    emit(answer, json_output, lambda: _render_update(answer))


def _not_added(
    plan: Plan,
    declared: DeclaredColumns,
    new: NewTables,
    source: Mapping[TableId, SourceTable],
) -> Iterator[dict[str, str]]:
    """Yield the columns and tables that the file did not get, and the tables that are gone."""
    for table, found in declared.refused.items():
        for reason, remedy in found:
            yield {"source": table, "reason": reason, "remedy": remedy}
    for each in new.matching:
        if each.reason:
            remedy = _how_to_admit(each)
            yield {"source": each.source.source, "reason": each.reason, "remedy": remedy}
    for gone in plan.all_tables:
        if not gone.is_query and (gone.schema, gone.table) not in source:
            remedy = "correct its name, or remove its entry"
            yield {"source": gone.source, "reason": _GONE, "remedy": remedy}


def _updated(
    plan: Plan, declared: DeclaredColumns, source: Mapping[TableId, SourceTable]
) -> Iterator[dict[str, Any]]:
    """Yield the tables that the file has declared before, with the columns that it got."""
    from cdclake.postgres.published import omitted_columns

    for table in plan.all_tables:
        actual = source.get((table.schema, table.table))
        yield {
            "source": table.source,
            "table": table.name,
            "key": [column.source for column in table.key_columns],
            "columns": [column.source for column in table.columns],
            "omitted_columns": [] if actual is None else list(omitted_columns(table, actual)),
            "added_columns": list(declared.added.get(table.source, ())),
        }


def _how_to_admit(proposal: Proposal) -> str:
    from cdclake.postgres.pipeline_text import entry_lines

    if proposal.remedy or proposal.declared is None:
        return proposal.remedy
    return "to admit it, add these lines:\n" + "\n".join(entry_lines(proposal))


def _render_update(answer: dict[str, Any]) -> None:
    added = [(t["source"], t["added_columns"]) for t in answer["tables"] if t["added_columns"]]
    for source, columns in added:
        say(f"{answer['file']}: added {', '.join(columns)} to {source}")
    for source in answer["added_tables"]:
        say(f"{answer['file']}: added the table {source}, with all its columns in clear")
    for refused in answer["refused"]:
        say(f"{refused['source']}: {refused['reason']}; {refused['remedy']}")
    if count := len(answer["undeclared_tables"]):
        what = "1 table" if count == 1 else f"{count} tables"
        say(f"{what} of the source not declared, nor in `policies: new_tables`")
    say(
        f"Review the file, then run: cdclake up {shlex.quote(answer['file'])}"
        if added or answer["added_tables"]
        else f"{answer['file']} declares every column that it can"
    )


def _dsn(given: str | None) -> str:
    if not given:
        raise InputError(
            "no database to read",
            f"set {SOURCE_DSN_KEY} to its DSN, or use --from-db DSN or --from-db local",
        )
    return given_source(given)


def _summary(output: Path, proposals: list[Proposal]) -> dict[str, Any]:
    tables = [_proposed(proposal) for proposal in proposals if not proposal.reason]
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


def _proposed(proposal: Proposal) -> dict[str, Any]:
    declared = proposal.declared
    assert declared is not None  # the proposal has no reason against it
    return {
        "source": proposal.source.source,
        "table": declared.name,
        "key": [column.source for column in declared.key_columns],
        "columns": [column.source for column in declared.columns],
        "omitted_columns": list(proposal.omitted),
    }


def _render(output: Path, proposals: list[Proposal], warnings: list[dict[str, str]]) -> None:
    refused = [proposal for proposal in proposals if proposal.reason]
    written = counted(len(proposals) - len(refused), "table")
    say(f"{output}: {written}, {len(refused)} refused")
    for proposal in refused:
        say(f"  {proposal.source.source}: {proposal.reason}")
    if refused:
        say("The refused tables are comments in the file, with what admits each.")
    say_all(warning_lines(warnings))
    if len(refused) < len(proposals):
        say(f"Review the file, then run: cdclake up {shlex.quote(str(output))}")
