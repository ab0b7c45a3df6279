"""`cdclake doctor`: check this machine, a source, or an account, and print remedies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import SOURCE_DSN_KEY, JsonOption, emit, say
from cdclake.cli.target import EnvironmentOption, Target, TargetOption
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.check import Check


def doctor(
    file: Annotated[Path | None, typer.Argument(help="Pipeline file to check for.")] = None,
    source: Annotated[
        str | None,
        typer.Option(envvar=SOURCE_DSN_KEY, help="DSN of a source database to check."),
    ] = None,
    target: TargetOption = Target.LOCAL,
    environment: EnvironmentOption = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair what can be repaired without a decision.")
    ] = False,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe", help="With --target aws: run the probe job, and add what it found."
        ),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Check what a lake needs, and print a remedy for each check that fails.

    Locally: Java, jars, disk, ports and rights, and with --source the database. With --target aws:
    the account, before a first deployment; with --probe also where the Glue jobs will run. Exit
    with 1 if a check has failed.
    """
    from cdclake.check import summary

    if probe and target is not Target.AWS:
        raise InputError("--probe runs a Glue job", "add --target aws")
    checks, fixed = (
        _aws(file, environment, fix=fix, probe=probe)
        if target is Target.AWS
        else _here(file, source, environment, fix=fix)
    )
    answer = {**summary(checks), "fixed": fixed}
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(1)


def _here(
    file: Path | None, source: str | None, environment: str | None, *, fix: bool
) -> tuple[list[Check], list[str]]:
    from cdclake.config.resolve import load_plan
    from cdclake.local.doctor import check_database, check_lake, check_machine, repair
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    plan = None if file is None else load_plan(file, environment)
    fixed = repair(home) if fix else []
    with step("check the machine"):
        checks = [*check_machine(home), *check_lake(home)]
    if source is not None:
        with step("check the database"):
            checks += check_database(source, plan)
    return checks, fixed


def _aws(
    file: Path | None, environment: str | None, *, fix: bool, probe: bool
) -> tuple[list[Check], list[str]]:
    from cdclake.config.deployment import load_deployment
    from cdclake.deployed.aws_calls import explained
    from cdclake.deployed.preflight import create_roles, preflight
    from cdclake.deployed.probe import run_probe

    if file is None:
        raise InputError(
            "a pipeline file is required with --target aws",
            "run `cdclake doctor FILE --environment NAME --target aws`",
        )
    deployment = load_deployment(file, environment)
    with step("check the account"), explained(deployment.prefix, "check the account for"):
        fixed = create_roles(deployment) if fix else []
        checks = preflight(deployment)
    checks += run_probe(file, environment) if probe else []
    return checks, [f"created the role of {service}" for service in fixed]


def _render(answer: dict[str, Any]) -> None:
    for line in answer["fixed"]:
        say(f"fixed: {line}")
    for check in answer["checks"]:
        say(f"{check['state']:<8} {check['name']}: {check['detail']}")
        if check["remedy"]:
            say(f"{'':<8} remedy: {check['remedy']}")
