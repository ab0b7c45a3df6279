"""Names of the log groups of Firehose and of the functions that make its rows.

The name in them is the deployment's for the streams of its tables, which share the groups, and the
Firehose stream's for web logs and put tables.
"""

from __future__ import annotations


def firehose_log(name: str) -> str:
    """Return the log group of Firehose's errors."""
    return f"/aws/kinesisfirehose/{name}"


def function_log(name: str) -> str:
    """Return the log group of the function."""
    return f"/aws/lambda/{name}"
