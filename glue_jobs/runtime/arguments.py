"""Job arguments as Glue passes them; the only module that imports awsglue."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from awsglue.utils import getResolvedOptions


def read_arguments(
    required: Sequence[str], optional: Sequence[str] = (), argv: Sequence[str] | None = None
) -> dict[str, str]:
    """Return the job's arguments by name, without optional ones that were not passed.

    `getResolvedOptions` fails if an argument is missing, so it gets only those optional names that
    the command line has. Glue's own flags are ignored.
    """
    given = list(sys.argv if argv is None else argv)
    present = [name for name in optional if _has(given, name)]
    resolved = getResolvedOptions(given, [*required, *present])
    return {name: resolved[name] for name in (*required, *present)}


def brokers_of(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's Kafka options: the brokers and the JSON object in `kafka_options`."""
    options: dict[str, str] = json.loads(arguments.get("kafka_options", "{}"))
    return {"kafka.bootstrap.servers": arguments["brokers"]} | options


def _has(argv: Sequence[str], name: str) -> bool:
    return any(word == f"--{name}" or word.startswith(f"--{name}=") for word in argv)
