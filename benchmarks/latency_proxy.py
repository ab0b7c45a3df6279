"""`python -m benchmarks.latency_proxy --port N --data DIR`: the local S3 and Glue, further off.

Each request is counted and waits first, as a round trip to AWS would have it wait; then the local
lake's own server answers it. With `--near` it is only counted. That server shares the machine with
the measured process: seconds from here compare with each other, not with those of tables in a
folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.requests import COUNTS
from cdclake.local.aws.aws_server import HEALTH, DurableAws, scope
from cdclake.local.aws.http_server import Answer, Server

LATENCY_SECONDS = {"s3": 0.030, "glue": 0.080}


def command(port: int, data: Path, *, is_far: bool) -> tuple[str, ...]:
    """Return the command of a server near or far."""
    options = () if is_far else ("--near",)
    place = ("--port", str(port), "--data", str(data))
    return sys.executable, "-m", "benchmarks.latency_proxy", *place, *options


class FarAws:
    """The local S3 and Glue, behind a count and a wait."""

    def __init__(self, near: DurableAws, latency: Mapping[str, float]) -> None:
        self._near, self._latency = near, latency
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        """The local answer, late; for `COUNTS` the requests so far, by service."""
        if environ["PATH_INFO"] == COUNTS:
            counts = {service: self._counts[service] for service in LATENCY_SECONDS}
            return 200, {"content-type": "application/json"}, json.dumps(counts).encode()
        if environ["PATH_INFO"] != HEALTH:
            _, service = scope(environ)
            with self._lock:
                self._counts[service] += 1
            time.sleep(self._latency.get(service, 0.0))
        return self._near(environ, body)


def main() -> int:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser(description="S3 and Glue, some way off.")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--near", action="store_true", help="count the requests, and do not wait")
    args = parser.parse_args()
    latency = {} if args.near else LATENCY_SECONDS
    with Server(args.port, FarAws(DurableAws(args.data), latency)) as server:
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
