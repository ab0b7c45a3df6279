"""Glue entry point of `cdclake replay`, `resume` and `resync` with `--target aws`.

Arguments: --plan s3://.../plan.json --control s3://.../control --brokers HOST:PORT
[--kafka_options JSON of more Kafka options] --source JSON of libpq keywords --login SECRET
[--authorities s3://.../x.pem] --offsets TOPIC of Connect --verb replay|resume|resync
[--tables a,b] [--expired true] [--run ID, the name of the report]
[--metrics NAME of the deployment in CloudWatch].
"""

from __future__ import annotations

import sys

from cdclake.jobs.operations.operate_job import run
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout


def main() -> int:
    """Run the job with the arguments of this process; return the exit code."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "verb", "brokers", "source", "login", "offsets"],
        ["kafka_options", "authorities", "tables", "expired", "run", "metrics"],
    )
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
