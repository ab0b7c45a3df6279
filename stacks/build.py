"""Entry point for the CDK apps of users: `cdclake.build`."""

from __future__ import annotations

import sys
from pathlib import Path

from aws_cdk import App

from cdclake.config.deployment import load_deployment
from cdclake.errors import CdcError
from cdclake.stacks.lake_handles import LakeHandles
from cdclake.stacks.pipeline_app import add_stacks, check_security


def build(app: App, file: str | Path, environment: str | None = None) -> LakeHandles:
    """Add the stacks of a pipeline file's deployment to the app, and cdk-nag's checks.

    A file that cannot be deployed ends the process, as the CDK CLI expects of its app: the problems
    are on standard error, and the exit code is that of `cdclake validate`.

    Args:
        app: the CDK app; other stacks may be added to it.
        file: the pipeline file, relative to the current folder.
        environment: one of the file's `environments:`; None: the file without an overlay.

    Returns:
        Handles for the app's other stacks.
    """
    try:
        handles = add_stacks(app, load_deployment(Path(file), environment))
    except CdcError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    check_security(app)
    return handles
