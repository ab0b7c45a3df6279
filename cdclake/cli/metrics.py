"""`cdclake metrics`: the figures of `status` for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.status import local_status

if TYPE_CHECKING:
    from cdclake.prometheus_text import Sample


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
    json_output: JsonOption = False,
) -> None:
    """Print the local lake's metrics in Prometheus's text format, or serve them.

    They are the figures of `status`, read again for each scrape; one that is not known is left out.
    """
    if serve is not None:
        _serve(serve, json_output)
        return
    from cdclake.prometheus_text import prometheus_text

    found = _samples()
    answer = {"ok": True, "metrics": [sample.to_json() for sample in found]}
    emit(answer, json_output, lambda: say(prometheus_text(found).rstrip()))


def _samples() -> list[Sample]:
    """Read the samples; raise NotRunning if there is no lake."""
    from cdclake.prometheus_text import samples

    return list(samples(local_status()))


def _serve(port: int, json_output: bool) -> None:
    from cdclake.errors import NotRunning
    from cdclake.local.metrics_server import PATH, metrics_server
    from cdclake.prometheus_text import Sample, prometheus_text

    def page() -> str:
        try:
            return prometheus_text(_samples())
        except NotRunning:  # the endpoint outlives a restart of the lake
            return prometheus_text([Sample("cdclake_healthy", 0.0, {})])

    _samples()  # a missing lake is reported now
    with metrics_server(port, page) as server:
        url = f"http://127.0.0.1:{port}{PATH}"
        emit({"ok": True, "url": url}, json_output, lambda: say(f"metrics at {url}"))
        server.serve_forever()
