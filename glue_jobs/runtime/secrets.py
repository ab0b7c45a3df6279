"""Secrets passed by reference, in the syntax that Kafka Connect resolves as well."""

from __future__ import annotations

import re
from pathlib import Path

from cdclake.errors import InputError


def resolve_secret(reference: str) -> str:
    """Return the value of `${file:PATH:KEY}`; InputError, without the value, if it is missing."""
    found = re.fullmatch(r"\$\{file:(.+):([^:]+)\}", reference)
    if found is None:
        raise InputError(
            "the job expects a reference to a secret, but got another value",
            "pass it as ${file:PATH:KEY}",
        )
    path, key = found.groups()
    for line in Path(path).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and name == key:
            return value
    raise InputError(f"{path} has no {key!r}", "restore this key in the secrets file")
