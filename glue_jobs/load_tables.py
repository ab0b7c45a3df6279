"""Glue entry point: load every table as of one LSN; later changes arrive through the slot.

Arguments: --plan s3://.../plan.json --control s3://.../control --run ID --epoch N --slot NAME
--source JSON of a SourceAddress --mask_salt REFERENCE. It creates the slot and
writes the LSN where the connector has to begin to `loads/<epoch>.json`.
"""

from __future__ import annotations

import sys

from cdclake.jobs.bulk_load.bulk_load import run
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout


def main() -> int:
    """Load the tables, write the report and return the exit code."""
    log_to_stdout()
    return run(
        read_arguments(
            ["JOB_NAME", "plan", "control", "run", "epoch", "slot", "source", "mask_salt"]
        )
    )


if __name__ == "__main__":
    sys.exit(main())
