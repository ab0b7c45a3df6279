"""Job arguments, read the way Glue passes them; the only place that knows awsglue."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from awsglue.utils import getResolvedOptions


def read_arguments(
    required: Sequence[str], optional: Sequence[str] = (), argv: Sequence[str] | None = None
) -> dict[str, str]:
    """The job's arguments by name; optional ones that were not passed are absent.

    `getResolvedOptions` fails on a name that is not there, so optional names are asked for only
    where the command line has them. Glue's own flags are ignored.
    """
    given = list(sys.argv if argv is None else argv)
    present = [name for name in optional if _has(given, name)]
    resolved = getResolvedOptions(given, [*required, *present])
    return {name: resolved[name] for name in (*required, *present)}


def brokers_of(arguments: Mapping[str, str]) -> dict[str, str]:
    """Spark's options for Kafka: `brokers`, and those of `kafka_options`, which is JSON."""
    options: dict[str, str] = json.loads(arguments.get("kafka_options", "{}"))
    return {"kafka.bootstrap.servers": arguments["brokers"]} | options


def _has(argv: Sequence[str], name: str) -> bool:
    return any(word == f"--{name}" or word.startswith(f"--{name}=") for word in argv)
