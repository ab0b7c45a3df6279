"""Glue entry point: load every table from the source at one LSN, and leave the rest to the slot.

Arguments: --plan s3://.../plan.json --control s3://.../control --run ID --epoch N --slot NAME
--source JSON of a SourceAddress --mask_salt REFERENCE. It creates the slot, and says in
`loads/<epoch>.json` at which LSN the connector has to begin.
"""

from __future__ import annotations

import sys

from cdclake.jobs.bulk_load.bulk_load import run
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout


def main() -> int:
    """Load, and write the report; the process's exit code."""
    log_to_stdout()
    return run(
        read_arguments(
            ["JOB_NAME", "plan", "control", "run", "epoch", "slot", "source", "mask_salt"]
        )
    )


if __name__ == "__main__":
    sys.exit(main())
