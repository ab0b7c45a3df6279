"""Forecast of a deployment of a pipeline file, for `cdclake plan`; nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdclake.config.deployment import Deployment, load_deployment
from cdclake.delivery_remedies import read_again
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.deployed.kafka_changes import check_kafka_changes
from cdclake.errors import ComponentFailed, InputError, NotRunning
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan
from cdclake.plan_diff import compare, compare_stored
from cdclake.plan_effects import READ, SourceFindings, forecast
from cdclake.redrive.objects import error_prefix, failed_prefixes
from cdclake.rereading import refuse_rereading

_SLOT = (
    "for a deployment, a lost slot, relations that changed and columns renamed in the source are"
    " not known"
)
_ACCOUNT = (
    "`aws:` is not compared with the account: `cdk diff` shows what changes there; with `--against"
    " FILE` it is compared, and a new `aws.connect.epoch`, which reads every table again, is seen"
)
_NOT_READ = "the connector reads no rows of it by itself"
_BY_SIGNAL = "send the signal of its incremental snapshot, see `cdclake runbook adding-a-table`"


def forecast_deployment(
    file: Path, environment: str | None, against: Path | None
) -> dict[str, Any]:
    """Return the effects of deploying the file, compared with `against` or with the account.

    Raises:
        InputError: if the deployed lake cannot be continued, or the account cannot be asked
    """
    after = load_deployment(file, environment)
    settings: list[dict[str, Any]] = []
    deployment = "the deployed lake" if against is None else f"a deployment of {against}"
    if against is not None:
        other = load_deployment(against, environment)
        check_kafka_changes(other, after)
        before: Plan | None = other.plan
        compared, settings = str(against), [*_changed_aws(other, after)]
    else:
        before, compared = _deployed_plan(file, environment)
    answer = _effects(before, after.plan, _new_epoch(settings), deployment)
    return {
        "ok": True,
        "target": "aws",
        "environment": environment,
        "compared_with": compared,
        **answer,
        "settings": [*answer["settings"], *settings],
        "unknown": [_SLOT, *([_ACCOUNT] if before and against is None else [])],
        "warnings": [*_abandoned_prefix(before, after.plan)],
    }


def _deployed_plan(file: Path, environment: str | None) -> tuple[Plan | None, str]:
    """Return the plan that the deployed jobs read, and what it was compared with."""
    try:
        lake = DeployedLake(file, environment)
        folder, _, name = lake.arguments["--plan"].rpartition("/")
        with explained(lake.name, "read the plan of"):
            stored = ObjectStore(folder).read(name)
    except NotRunning:
        return None, "the account, where it is not deployed"
    except ComponentFailed as error:
        remedy = f"{error.remedy}; or compare with a file: `--against FILE`"
        raise InputError(error.message, remedy) from error
    if stored is None:
        raise InputError(
            f"the plan of {lake.name} is missing in {folder}",
            "restore its deleted version in S3, since a deployment copies only changed files; or"
            " compare with a file: `--against FILE`",
        )
    return Plan.from_json(json.dumps(stored.content)), f"what is deployed as {lake.name}"


def _effects(before: Plan | None, after: Plan, new_epoch: str, deployment: str) -> dict[str, Any]:
    if before is None:
        return forecast(None, after, compare(None, after), SourceFindings())
    _check_shards(before, after, deployment)
    compare_stored(before, after, deployment)
    change = compare(before, after)
    change = change.all_snapshotted() if new_epoch else change
    refuse_rereading(before, change)
    answer = forecast(before, after, change, SourceFindings(new_epoch=new_epoch))
    if new_epoch:
        return answer
    return {
        **answer,
        "by_resync": True,
        "tables": [_by_resync(each, after) for each in answer["tables"]],
    }


def _check_shards(before: Plan, after: Plan, deployment: str) -> None:
    """Raise InputError if a table would move to another stack.

    One stack would delete its topic, and the other one create a topic of the same name.
    """
    deployed = {table.source: table.shard for table in before.all_tables}
    moved = [
        f"{table.source}: `shard` changed from {deployed[table.source]} to {table.shard}"
        for table in after.all_tables
        if deployed.get(table.source, table.shard) != table.shard
    ]
    if moved:
        raise InputError(
            f"cannot apply this pipeline file to {deployment}: {'; '.join(moved)}",
            "restore the shards: a table cannot move to another stack",
        )


def _abandoned_prefix(before: Plan | None, after: Plan) -> Iterator[dict[str, str]]:
    """Yield a warning if the deployment no longer knows the folder of the failed records."""
    old, new = error_prefix(before) if before else "", error_prefix(after)
    if old in ("", new):
        return
    what = (
        f"`firehose: error_prefix` changed from {old!r} to {new!r}"
        if new
        else "the file no longer has a Firehose stream"
    )
    redrive = (
        "run `cdclake redrive --target aws` before the deployment, and delete all versions of what"
        f" is left below {', '.join(failed_prefixes(old))} after it"
    )
    yield {
        "message": f"{what}: the records below {old}/ are then neither redriven, nor erased by"
        " `cdclake forget`, nor deleted after `failed_days`",
        "remedy": f"restore `error_prefix: {old}`, or {redrive}" if new else redrive,
    }


def _by_resync(table: dict[str, Any], after: Plan) -> dict[str, Any]:
    """Return the table with what has to be run, since a deployment reads no rows again."""
    if table["effect"] not in READ:
        return table
    delivery = after.table(table["table"]).delivery
    if delivery == "poll":  # its first poll reads every row
        return table
    read = read_again(table["table"], delivery, options=" --target aws")
    how = _BY_SIGNAL if delivery == "firehose" else read
    return {**table, "reason": f"{table['reason']}; {_NOT_READ}: {how}"}


def _changed_aws(before: Deployment, after: Deployment) -> Iterator[dict[str, Any]]:
    old, new = (dict(_flat("aws", each.aws.model_dump())) for each in (before, after))
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            yield {"key": key, "before": old.get(key), "after": new.get(key)}


def _flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield key, value
        return
    for name, below in value.items():
        yield from _flat(f"{key}.{name}", below)


def _new_epoch(settings: list[dict[str, Any]]) -> str:
    changed = next((each for each in settings if each["key"] == "aws.connect.epoch"), None)
    return f"`aws.connect.epoch` becomes {changed['after']}" if changed else ""
