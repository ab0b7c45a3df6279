"""The templates of a deployment in memory, for commands that read and do not deploy them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_cdk import App

from cdclake.config.deployment import Deployment
from cdclake.places import RESOURCES
from cdclake.stacks.pipeline_app import add_stacks


def synthesize_templates(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """Return the templates by the names of their stacks, with the flags of `cdk.json`."""
    flags = json.loads((RESOURCES / "cdk.json").read_text("utf-8"))["context"]
    with TemporaryDirectory() as folder:
        app = App(
            context=flags,
            outdir=folder,
            analytics_reporting=False,
            builtin_cloud_formation_validation=False,  # half the time; `cdk synth` validates them
        )
        add_stacks(app, deployment)
        app.synth()
        return {
            path.name.removesuffix(".template.json"): json.loads(path.read_text("utf-8"))
            for path in sorted(Path(folder).glob("*.template.json"))
        }
