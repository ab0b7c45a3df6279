"""How many requests the S3 and Glue of `benchmarks.latency_proxy` have answered."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from urllib.request import ProxyHandler, build_opener

from benchmarks.iceberg_catalog import ENDPOINT

COUNTS = "/_bench/requests"
_DIRECT = build_opener(ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests by service; None where the tables lie in a folder and nobody counts."""

    s3: int | None
    glue: int | None

    def __sub__(self, earlier: Requests) -> Requests:
        if self.s3 is None or self.glue is None or earlier.s3 is None or earlier.glue is None:
            return Requests(None, None)
        return Requests(self.s3 - earlier.s3, self.glue - earlier.glue)


def requests_so_far() -> Requests:
    """The sums since the server began."""
    endpoint = os.environ.get(ENDPOINT)
    if endpoint is None:
        return Requests(None, None)
    with _DIRECT.open(f"{endpoint}{COUNTS}", timeout=10) as response:
        counts = json.load(response)
    return Requests(counts["s3"], counts["glue"])
