"""Glue entry point: load every table as of one LSN; later changes arrive through the slot.

Arguments: --plan s3://.../plan.json --control s3://.../control --run ID --epoch N --slot NAME
--source JSON of a SourceAddress [--mask_salt REFERENCE] [--metrics NAME of the deployment in
CloudWatch]. It creates the slot and writes the LSN where the connector has to begin to
`loads/<epoch>.json`. On AWS also --offsets TOPIC --connector NAME --brokers HOST:PORT
[--kafka_options JSON of further options] --authorities s3://.../x.pem: it then writes that LSN to
the connector's offsets, and checks the source's certificate with these authorities.
"""

from __future__ import annotations

import sys

from cdclake.jobs.bulk_load.bulk_load import run
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout


def main() -> int:
    """Load the tables, write the report and return the exit code."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "run", "epoch", "slot", "source"],
        ["authorities", "mask_salt", "offsets", "connector", "brokers", "kafka_options", "metrics"],
    )
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
