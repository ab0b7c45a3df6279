"""Warnings of jsii about the version of Node.js, which it prints when the CDK is imported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# The end of life is silenced by version, the others by any value.
_VERSIONS = ",".join(map(str, range(100)))
_SILENCING = {
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": _VERSIONS,
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_KNOWN_BROKEN_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
}


@contextmanager
def silenced_node_warnings() -> Iterator[None]:
    """Keep the warnings out of a command's output; import the CDK for the first time in the block.

    jsii prints them as Python's spelling of bytes, also between the JSON lines of `--json`. An app
    that `cdk` runs still prints them.
    """
    before = {name: os.environ.get(name) for name in _SILENCING}
    os.environ.update(_SILENCING)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
