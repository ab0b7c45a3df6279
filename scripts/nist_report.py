"""`make nist`: report findings of cdk-nag's NIST 800-53 rules on a pipeline's deployment.

Many of these rules depend on an organisation's choices (backup plans, cross-region replication),
so a finding is a question, not an error, and the report is not a gate. The gate is AwsSolutions,
which the app itself applies.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_cdk import App, Validations
from cdk_nag import NIST80053R5Checks

from cdclake.config.deployment import load_deployment
from cdclake.stacks.pipeline_app import add_stacks

PROJECT = Path(__file__).resolve().parents[1]


def findings(pipeline: Path, environment: str | None = None) -> dict[str, list[str]]:
    """Return the resources that violate each rule; raise as `load_deployment` does."""
    flags = json.loads((PROJECT / "cdk.json").read_text())["context"]
    with TemporaryDirectory() as folder:
        app = App(context=flags, outdir=folder, analytics_reporting=False)
        add_stacks(app, load_deployment(pipeline, environment))
        Validations.of(app).add_plugins(NIST80053R5Checks(app))
        try:
            app.synth()
        except RuntimeError as error:  # findings end a synth; the report is written before
            if "ValidationFailed" not in str(error):
                raise
        report = json.loads((Path(folder) / "validation-report.json").read_text())
    return _by_rule(report)


def _by_rule(report: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for plugin in report["pluginReports"]:
        for violation in plugin["violations"]:
            places = [place["constructPath"] for place in violation["violatingConstructs"]]
            found[violation["ruleName"]] += places
    return {rule: sorted(places) for rule, places in sorted(found.items())}


def main() -> None:
    """Print one line per rule; the arguments are the pipeline file and an environment."""
    pipeline = Path(sys.argv[1]) if len(sys.argv) > 1 else PROJECT / "pipelines" / "shop.yaml"
    environment = sys.argv[2] if len(sys.argv) > 2 else None
    for rule, places in findings(pipeline, environment).items():
        print(f"{rule}: {len(places)}: {', '.join(places)}")  # noqa: T201  (it is a report)


if __name__ == "__main__":
    main()
