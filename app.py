"""The CDK app: the stacks of one pipeline file in one of its environments.

`npx cdk synth -c pipeline=pipelines/shop.yaml -c environment=prod`. It reads only that
file, not the account, the network or the clock, so equal files give equal templates.
"""

from __future__ import annotations

import sys

try:
    from aws_cdk import App
except ModuleNotFoundError as error:
    # The CDK CLI started a Python without the packages, before anything could check for them.
    sys.exit(f"{sys.executable} has no {error.name}; run: pip install -r requirements.txt")

import cdclake


def main() -> None:
    """Write the templates; exit with 2 if the file cannot be deployed, as `validate` does."""
    app = App()
    pipeline, environment = (app.node.try_get_context(key) for key in ("pipeline", "environment"))
    cdclake.build(app, pipeline, environment)
    app.synth()


if __name__ == "__main__":
    main()
