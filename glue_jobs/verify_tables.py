"""Glue entry point: compare source and lake row for row, as `cdclake verify` does locally.

Arguments: --plan s3://.../plan.json --control s3://.../control --brokers HOST:PORT
[--kafka_options JSON of further options] --source JSON of libpq parameters --login SECRET
[--authorities s3://.../x.pem] [--mask_salt SECRET] [--tables a,b] [--wait SECONDS] [--sample ROWS]
[--deep true] [--reader spark: compare what Spark answers] [--runs JOBS to run before]
[--run ID: the report's name] [--metrics NAME of the deployment in CloudWatch].

PostgreSQL and DuckDB do the comparison on the driver; without --reader, Spark only provides the
Kafka client. The job
writes its report and a heartbeat row in the source, nothing else.
"""

from __future__ import annotations

import sys

from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.jobs.verify.deployed_verify import run


def main() -> int:
    """Compare the tables, write the report and return the exit code."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "brokers", "source", "login"],
        ["kafka_options", "authorities", "mask_salt", "tables", "wait", "sample", "deep", "run",
         "metrics", "reader", "runs"],
    )  # fmt: skip
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
