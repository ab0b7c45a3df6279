"""Node.js, which the CDK starts as soon as it is imported."""

from __future__ import annotations

import os
import shutil

NODE_REMEDY = "install Node.js 22 or 24"
_KEY = "JSII_NODE"  # jsii's variable for another program than `node`


def node_program() -> str:
    """Return the name or path of the program that the CDK starts."""
    return os.environ.get(_KEY, "node")


def has_node() -> bool:
    """Return True if the CDK can find its program.

    Without it the import fails, and jsii prints a traceback when the interpreter ends.
    """
    return shutil.which(node_program()) is not None
