"""`cdclake metrics`: the figures of `status` for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.status import local_status
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)
from cdclake.interrupts import until_ended


def metrics(
    serve: Annotated[
        int | None,
        typer.Option(
            "--serve",
            min=1,
            max=65535,
            help="Serve them at http://127.0.0.1:PORT/metrics until interrupted.",
        ),
    ] = None,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Print the lake's metrics in Prometheus's text format, or serve them.

    They are the figures of `status`, read again for each scrape; one that is not known is left out.
    """
    read = _status_of(target, file, environment)
    if serve is not None:
        _serve(read, serve, json_output)
        return
    from cdclake.prometheus_text import prometheus_text, samples

    found = list(samples(read()))
    answer = {"ok": True, "metrics": [sample.to_json() for sample in found]}
    emit(answer, json_output, lambda: say(prometheus_text(found).rstrip()))


def _status_of(
    target: Target, file: Path | None, environment: str | None
) -> Callable[[], dict[str, Any]]:
    """Return what reads the object of `status`; it raises NotRunning if there is no lake."""
    if target is Target.LOCAL:
        check_local(file, environment)
        return local_status
    from cdclake.deployed.deployed_lake import DeployedLake
    from cdclake.deployed.deployed_status import deployed_status

    given = deployed_file(file)
    # Opened for each reading: the deployment and its file may have changed since.
    return lambda: deployed_status(DeployedLake(given, environment))


def _serve(read: Callable[[], dict[str, Any]], port: int, json_output: bool) -> None:
    from cdclake.errors import NotRunning
    from cdclake.local.metrics_server import PATH, metrics_server
    from cdclake.prometheus_text import Sample, prometheus_text, samples

    def page() -> str:
        try:
            return prometheus_text(list(samples(read())))
        except NotRunning:  # the endpoint outlives a restart of the lake
            return prometheus_text([Sample("cdclake_healthy", 0.0, {})])

    read()  # a missing lake is reported now
    with metrics_server(port, page) as server, until_ended():
        url = f"http://127.0.0.1:{port}{PATH}"
        emit({"ok": True, "url": url}, json_output, lambda: say(f"metrics at {url}"))
        server.serve_forever()
