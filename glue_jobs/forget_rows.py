"""Glue entry point of `cdclake forget --target aws`: erase rows, delete their objects, search.

Arguments: --plan s3://.../plan.json --control s3://.../control --brokers HOST:PORT
[--kafka_options JSON of more Kafka options] --source JSON of libpq keywords --login SECRET
[--authorities s3://.../x.pem] --mask_salt NAME of the secret with the pipeline's salt
--tables NAME of one table --order ID of the object with the keys --grace SECONDS
[--run ID, the name of the report] [--metrics NAME of the deployment in CloudWatch].
"""

from __future__ import annotations

import sys

from cdclake.jobs.forget.forget_job import run
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout


def main() -> int:
    """Run the job with the arguments of this process; return the exit code."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "brokers", "source", "login", "mask_salt", "tables",
         "order", "grace"],
        ["kafka_options", "authorities", "run", "metrics"],
    )  # fmt: skip
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
