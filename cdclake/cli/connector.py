"""`cdclake connector`: the Debezium configuration for one's own Connect worker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say, warn_all
from cdclake.cli.target import DeploymentEnvironment, DeploymentFile
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.config.deployment import Deployment

Warned = Mapping[str, str]

Worker = Annotated[
    bool,
    typer.Option(
        "--worker",
        help="Print settings for the Connect worker instead of the connector's configuration.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        help="Source's host; default: `aws: source: existing: endpoint`, else a placeholder."
    ),
]
Port = Annotated[int, typer.Option(help="Source's port, with --host.")]
Authorities = Annotated[
    str, typer.Option(help="PEM file on the worker that the source's certificate is checked with.")
]
HeapMb = Annotated[
    int,
    typer.Option(
        min=256, help="Heap of the worker in MB; the connector queues events in an eighth of it."
    ),
]
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
    from cdclake.debezium.deployed_connector import deployed_config

    deployment = load_deployment(file, environment)
    region = region or deployment.aws.region
    if worker:
        _print_worker(deployment, region, json_output=json_output)
        return
    source, warnings = _source(deployment, host, port)
    config = deployed_config(
        deployment.plan,
        deployment.prefix,
        source=source,
        login=naming.login_secret(deployment.prefix),
        epoch=deployment.aws.connect.epoch,
        heap_bytes=heap_mb * 1024**2,
        region=_registry_region(deployment, region),
        authorities=authorities,
    )
    name = naming.connector_name(deployment.prefix)
    answer = {"ok": True, "name": name, "config": config, "warnings": warnings}
    emit(answer, json_output, lambda: _render(json.dumps(config, indent=2), warnings))


def _print_worker(deployment: Deployment, region: str | None, *, json_output: bool) -> None:
    from cdclake.debezium.deployed_connector import own_worker_settings
    from cdclake.debezium.worker import properties

    settings = own_worker_settings(deployment.plan, region)
    warnings = [] if region is not None else [_unknown_region(deployment)]
    answer = {"ok": True, "worker": settings, "warnings": warnings}
    emit(answer, json_output, lambda: _render(properties(settings).rstrip(), warnings))


def _render(text: str, warnings: Sequence[Warned]) -> None:
    """Print the text alone on standard output, which is redirected to a file."""
    say(text)
    warn_all(warnings)


def _source(
    deployment: Deployment, host: str | None, port: int
) -> tuple[tuple[str, int], list[Warned]]:
    """Return host and port of the source, with a warning if the host is only a placeholder."""
    from cdclake import naming

    existing = deployment.aws.source.existing
    if host is not None:
        return (host, port), []
    if existing is not None:
        return (existing.endpoint, existing.port), []
    return (f"<endpoint of {naming.source_server(deployment.prefix)}>", port), [
        {
            "message": f"{deployment.file} names no host: the deployment creates the source, and"
            " `database.hostname` is a placeholder",
            "remedy": "add --host HOST; `aws rds describe-db-instances` shows it when it exists",
        }
    ]


def _unknown_region(deployment: Deployment) -> Warned:
    return {
        "message": f"{deployment.file} names no region, and neither do these settings",
        "remedy": "add --region REGION or `aws: region:`, or set AWS_REGION on the worker",
    }


def _registry_region(deployment: Deployment, region: str | None) -> str:
    """Return the region of the Glue registry; empty without one."""
    from cdclake.plan import GLUE_REGISTRY

    if deployment.plan.registry != GLUE_REGISTRY:
        return ""
    if region is None:
        raise InputError(
            f"the Glue registry needs a region, and {deployment.file} does not set one",
            "add --region REGION, or `aws: region:`",
        )
    return region
