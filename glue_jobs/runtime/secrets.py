"""Secrets by reference, in the spelling that Kafka Connect resolves for the connector too."""

from __future__ import annotations

import re
from pathlib import Path

from cdclake.errors import InputError


def resolve_secret(reference: str) -> str:
    """The value behind `${file:PATH:KEY}`; InputError, which never repeats it, if there is none."""
    found = re.fullmatch(r"\$\{file:(.+):([^:]+)\}", reference)
    if found is None:
        raise InputError(
            "a secret was given to the job, or no reference to one",
            "pass it as ${file:PATH:KEY}",
        )
    path, key = found.groups()
    for line in Path(path).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and name == key:
            return value
    raise InputError(f"{path} has no {key!r}", "restore the file of secrets")
