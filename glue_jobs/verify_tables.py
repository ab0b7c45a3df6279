"""Glue entry point: compare source and lake row for row, as `cdclake verify` does locally.

Arguments: --plan s3://.../plan.json --control s3://.../control --brokers HOST:PORT
[--kafka_options JSON of further options] --source JSON of libpq's words --login SECRET
[--authorities s3://.../x.pem] [--mask_salt SECRET] [--tables a,b] [--wait SECONDS] [--sample ROWS]
[--run ID: the report's name] [--metrics NAME under which CloudWatch is told].

PostgreSQL and DuckDB compare, on the driver; of Spark it has Kafka's client. It writes nothing but
its report, and a heartbeat into the source.
"""

from __future__ import annotations

import sys

from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.jobs.verify.deployed_verify import run


def main() -> int:
    """Compare, and write the report; the process's exit code."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "brokers", "source", "login"],
        ["kafka_options", "authorities", "mask_salt", "tables", "wait", "sample", "run", "metrics"],
    )
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
