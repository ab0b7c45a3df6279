"""Glue entry point: have the stream repair tables, as `cdclake replay`, `resume` and `resync` do.

Arguments: --plan s3://.../plan.json --control s3://.../control --brokers HOST:PORT
[--kafka_options JSON of further options] --source JSON of libpq's words --login SECRET
[--authorities s3://.../x.pem] --offsets TOPIC of Connect's --verb replay|resume|resync
[--tables a,b] [--run ID: the report's name] [--metrics NAME under which CloudWatch is told].
"""

from __future__ import annotations

import sys

from cdclake.jobs.operations.table_operations import run
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout


def main() -> int:
    """Ask, wait, and write the report; the process's exit code."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "verb", "brokers", "source", "login", "offsets"],
        ["kafka_options", "authorities", "tables", "run", "metrics"],
    )
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
