"""Glue entry point: stream one pipeline's topics into its changelogs and states.

Arguments: --plan s3://.../plan.json --control s3://.../control --checkpoint URI --brokers HOST:PORT
[--kafka_options JSON of further options of the source] [--deployment ID: the stream ends when the
control object `stream.json` names another] [--metrics NAME of the deployment in CloudWatch]
[--table_metrics true: also of each table] [--mask_salt NAME of the secret with the pipeline's
salt, which recognizes the events of erased keys].
Catalog settings come from `--conf`.
"""

from __future__ import annotations

from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.jobs.stream.streaming_query import run_stream


def main() -> None:
    """Run the stream with this process's arguments."""
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "checkpoint", "brokers"],
        ["kafka_options", "deployment", "metrics", "table_metrics", "mask_salt"],
    )
    run_stream(arguments, OperationExecutor)


if __name__ == "__main__":
    main()
