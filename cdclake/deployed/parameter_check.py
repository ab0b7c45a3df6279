"""Check of the created source's parameters: whether RDS lets one set them to these values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import boto3

from cdclake.check import Check, failed, passed, skipped
from cdclake.config.aws_model import CreatedSource
from cdclake.config.database_parameters import database_parameters, parameter_family
from cdclake.config.deployment import Deployment

_NAME = "database parameters"
_RANGE = re.compile(r"(-?\d+)-(-?\d+)")


def check_parameters(deployment: Deployment) -> Iterator[Check]:
    """Compare the values of the parameter group with the ranges of its family."""
    source = deployment.aws.source.declared
    if not isinstance(source, CreatedSource) or not deployment.plan.tables:
        yield skipped(_NAME, "the source exists")
        return
    family, wanted = parameter_family(source), database_parameters(source)
    known = _known(family, of_cluster=source.engine == "aurora")
    refused = [name for name, value in wanted.items() if not _accepts(known.get(name), value)]
    for name in refused:
        yield failed(
            _NAME,
            f"{family} does not accept {name} = {wanted[name]}: {_offer(known.get(name))}",
            "change `slot_wal_gb:` under `aws: source: create:`, or use an existing source",
        )
    if not refused:
        yield passed(_NAME, f"{family} accepts {', '.join(wanted)}")


def _known(family: str, *, of_cluster: bool) -> dict[str, dict[str, Any]]:
    """Return what RDS tells of each parameter of the family."""
    which = "cluster_" if of_cluster else ""
    pages = boto3.client("rds").get_paginator(f"describe_engine_default_{which}parameters")
    return {
        parameter["ParameterName"]: parameter
        for page in pages.paginate(DBParameterGroupFamily=family)
        for parameter in page["EngineDefaults"]["Parameters"]
    }


def _accepts(parameter: dict[str, Any] | None, value: str) -> bool:
    if parameter is None or not parameter.get("IsModifiable", False):
        return False
    allowed = parameter.get("AllowedValues", "")
    if within := _RANGE.fullmatch(allowed):
        return int(within[1]) <= int(value) <= int(within[2])
    return not allowed or value in allowed.split(",")


def _offer(parameter: dict[str, Any] | None) -> str:
    if parameter is None:
        return "it has no such parameter"
    if not parameter.get("IsModifiable", False):
        return "it cannot be changed"
    return f"it takes {parameter['AllowedValues']}"
