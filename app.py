"""The CDK app: the stacks of one pipeline file in one of its environments.

`npx cdk synth -c pipeline=pipelines/shop.yaml -c environment=prod`. It reads only that
file, not the account, the network or the clock, so equal files give equal templates.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    from aws_cdk import App
except ModuleNotFoundError as error:
    # The CDK CLI started a Python without the packages, before anything could check for them.
    sys.exit(f"{sys.executable} has no {error.name}; run: pip install -r requirements.txt")

from cdclake.config.deployment import load_deployment
from cdclake.errors import CdcError
from cdclake.stacks.pipeline_app import add_stacks, check_security


def main() -> None:
    """Write the templates; exit with 2 if the file cannot be deployed, as `validate` does."""
    app = App()
    pipeline, environment = (app.node.try_get_context(key) for key in ("pipeline", "environment"))
    try:
        add_stacks(app, load_deployment(Path(pipeline), environment))
    except CdcError as error:
        print(error, file=sys.stderr)  # noqa: T201  (the CDK CLI shows what its app prints)
        sys.exit(error.exit_code)
    check_security(app)
    app.synth()


if __name__ == "__main__":
    main()
