"""`cdclake doctor`: check this machine, a source, or an account, and print remedies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import SOURCE_DSN_KEY, JsonOption, ask_to_continue, emit, say
from cdclake.cli.target import EnvironmentOption, Target, TargetOption
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.check import Check
    from cdclake.local.process.home import Home
    from cdclake.plan import Plan


_FixOption = Annotated[
    bool,
    typer.Option(
        "--fix",
        help="Fix what needs no decision: folder permissions, and service-linked roles on AWS.",
    ),
]
_ProbeOption = Annotated[
    bool,
    typer.Option("--probe", help="With --target aws: run the probe job, and add what it found."),
]
_ConnectorOption = Annotated[
    bool,
    typer.Option(
        "--probe-connector",
        help="With --target aws: create a temporary connector, report what its log shows, and"
        " delete it.",
    ),
]
_YesOption = Annotated[
    bool, typer.Option("--yes", help="Accept what --probe-connector costs, without a question.")
]


def doctor(
    file: Annotated[Path | None, typer.Argument(help="Pipeline file to check for.")] = None,
    source: Annotated[
        str | None,
        typer.Option(envvar=SOURCE_DSN_KEY, help="DSN of a source database to check."),
    ] = None,
    target: TargetOption = Target.LOCAL,
    environment: EnvironmentOption = None,
    fix: _FixOption = False,
    probe: _ProbeOption = False,
    connector: _ConnectorOption = False,
    yes: _YesOption = False,
    json_output: JsonOption = False,
) -> None:
    """Check what a lake needs, and print a remedy for each check that fails.

    Locally: platform, Java, Node.js, jars, disk, ports and rights, and with --source the database.
    With --target aws: the account, before a first deployment; with --probe also where the Glue jobs
    will run, with --probe-connector also where Debezium will. Exit with 1 if a check has failed.
    """
    from cdclake.check import summary

    _refuse_locally(target, probe=probe, connector=connector)
    if connector and not yes:
        _accept_cost(json_output)
    checks, fixed = (
        _aws(file, environment, fix=fix, probe=probe, connector=connector)
        if target is Target.AWS
        else _here(file, source, environment, fix=fix)
    )
    answer = {**summary(checks), "fixed": fixed}
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(1)


def _refuse_locally(target: Target, *, probe: bool, connector: bool) -> None:
    if target is Target.AWS:
        return
    if probe:
        raise InputError("--probe runs a Glue job", "add --target aws")
    if connector:
        raise InputError("--probe-connector runs a connector of MSK Connect", "add --target aws")


def _accept_cost(json_output: bool) -> None:
    """Ask whether to pay for the connector; without a terminal, require --yes."""
    from cdclake.cost.prices import PRICES
    from cdclake.deployed.connector_probe import MAX_MINUTES

    price = PRICES["connect.mcu"]
    cost = (
        f"--probe-connector creates a connector of one MCU for at most {MAX_MINUTES} minutes, at"
        f" {price.usd:.2f} dollars an hour in us-east-1 ({price.read_on}):"
        f" {price.usd * MAX_MINUTES / 60:.2f} dollars"
    )
    if json_output or not sys.stdin.isatty():
        raise InputError(cost, "add --yes to accept it")
    ask_to_continue(f"{cost}. Continue?")


def _here(
    file: Path | None, source: str | None, environment: str | None, *, fix: bool
) -> tuple[list[Check], list[str]]:
    from cdclake.config.resolve import load_plan
    from cdclake.local.doctor import check_lake, check_machine, repair
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    plan = None if file is None else load_plan(file, environment)
    fixed = repair(home) if fix else []
    with step("check the machine"):
        checks = [*check_machine(home), *check_lake(home)]
    if source is not None:
        checks += _database(home, source, plan)
    return checks, fixed


def _database(home: Home, source: str, plan: Plan | None) -> list[Check]:
    from cdclake.local.doctor import check_database
    from cdclake.local.lake.lake import LakeState
    from cdclake.local.lake.source_owner import owner_of

    with step("check the database"):
        return check_database(source, plan, owner_of(home, LakeState.load(home)))


def _aws(
    file: Path | None, environment: str | None, *, fix: bool, probe: bool, connector: bool
) -> tuple[list[Check], list[str]]:
    from cdclake.config.deployment import load_deployment
    from cdclake.deployed.aws_calls import explained
    from cdclake.deployed.connector_probe import probe_connector
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
    checks += probe_connector(deployment) if connector else []
    return checks, [f"created the role of {service}" for service in fixed]


def _render(answer: dict[str, Any]) -> None:
    for line in answer["fixed"]:
        say(f"fixed: {line}")
    for check in answer["checks"]:
        say(f"{check['state']:<8} {check['name']}: {check['detail']}")
        if check["remedy"]:
            say(f"{'':<8} remedy: {check['remedy']}")
