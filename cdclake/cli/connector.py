"""`cdclake connector`: the Debezium configuration for one's own Connect worker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import DeploymentEnvironment, DeploymentFile
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.config.deployment import Deployment

Worker = Annotated[bool, typer.Option("--worker", help="Print the worker's settings instead.")]
Host = Annotated[
    str | None, typer.Option(help="Source's host; default: `aws: source: existing: endpoint`.")
]
Port = Annotated[int, typer.Option(help="Source's port, with --host.")]
Authorities = Annotated[
    str, typer.Option(help="PEM file on the worker that the source's certificate is checked with.")
]
HeapMb = Annotated[int, typer.Option(min=256, help="Worker's heap; an eighth holds events.")]
Region = Annotated[str | None, typer.Option(help="Region of the secrets; default: `aws: region`.")]


def connector(
    file: DeploymentFile,
    environment: DeploymentEnvironment = None,
    worker: Worker = False,
    host: Host = None,
    port: Port = 5432,
    authorities: Authorities = "",
    heap_mb: HeapMb = 2048,
    region: Region = None,
    json_output: JsonOption = False,
) -> None:
    """Print the connector's configuration for another Connect worker (EKS, Strimzi, ECS).

    It is the one that is deployed to MSK Connect, as the body of `PUT /connectors/NAME/config`. It
    names the secret with the password, which cdclake's plugin reads on the worker. Without
    --authorities the certificate is checked with those of RDS.
    """
    from cdclake import naming
    from cdclake.config.deployment import load_deployment
    from cdclake.debezium.deployed_connector import deployed_config, own_worker_settings
    from cdclake.debezium.worker import properties

    deployment = load_deployment(file, environment)
    if worker:
        settings = own_worker_settings(deployment.plan, _region(deployment, region))
        answer = {"ok": True, "worker": settings}
        emit(answer, json_output, lambda: say(properties(settings).rstrip()))
        return
    config = deployed_config(
        deployment.plan,
        deployment.prefix,
        source=_source(deployment, host, port),
        login=naming.login_secret(deployment.prefix),
        epoch=deployment.aws.connect.epoch,
        heap_bytes=heap_mb * 1024**2,
        region=_registry_region(deployment, region),
        authorities=authorities,
    )
    answer = {"ok": True, "name": naming.connector_name(deployment.prefix), "config": config}
    emit(answer, json_output, lambda: say(json.dumps(config, indent=2)))


def _source(deployment: Deployment, host: str | None, port: int) -> tuple[str, int]:
    existing = deployment.aws.source.existing
    if host is not None:
        return host, port
    if existing is not None:
        return existing.endpoint, existing.port
    raise InputError(
        f"{deployment.file} names no host: its source is created by the deployment",
        "add --host HOST; `aws rds describe-db-instances` shows it",
    )


def _registry_region(deployment: Deployment, region: str | None) -> str:
    """Return the region of the Glue registry; empty without one."""
    from cdclake.plan import GLUE_REGISTRY

    return _region(deployment, region) if deployment.plan.registry == GLUE_REGISTRY else ""


def _region(deployment: Deployment, region: str | None) -> str:
    chosen = region or deployment.aws.region
    if chosen is None:
        raise InputError(
            f"{deployment.file} names no region", "add --region REGION, or `aws: region:`"
        )
    return chosen
