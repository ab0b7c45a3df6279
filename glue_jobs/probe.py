"""Glue entry point of `cdclake doctor --target aws --probe`: check where the jobs will run.

Arguments: --JOB_NAME --control s3://.../control --checkpoint s3://.../checkpoints/x
--database NAME [--run ID, the name of the report].
"""

from __future__ import annotations

import sys

from cdclake.jobs.probing.probe_job import run
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout


def main() -> int:
    """Run the job with the arguments of this process; return the exit code."""
    log_to_stdout()
    return run(read_arguments(["JOB_NAME", "control", "checkpoint", "database"], ["run"]))


if __name__ == "__main__":
    sys.exit(main())
