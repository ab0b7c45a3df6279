"""Whether the deployment was looked at: the CDK's Python modules ask Node.js for everything."""

import shutil
import subprocess

import pytest


@pytest.mark.skipif(
    shutil.which("node") is None,
    reason="Node.js is missing: none of the deployment's tests in tests/synth was run",
)
def test_node_answers() -> None:
    asked = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    assert asked.stdout.startswith("v")
