"""Node.js for `cdclake cost`: no warning about its version, and a message if it is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cdclake.stacks.node_warnings import silenced_node_warnings
from tests.source_tree import PROJECT

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="jsii runs in Node.js")

PRETENDED = "Object.defineProperty(process, 'version', {value: '%s'});"
# An import of the CDK itself takes seconds; jsii starts with the first package.
IMPORT = "import constructs"
SILENCED = f"""
from cdclake.stacks.node_warnings import silenced_node_warnings
with silenced_node_warnings():
    {IMPORT}
"""


def stderr_of(script: str, version: str, folder: Path) -> str:
    preload = folder / "version.js"
    preload.write_text(PRETENDED % version)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("JSII_SILENCE")
    }
    run = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"NODE_OPTIONS": f"--require={preload}"},
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stderr


@needs_node
@pytest.mark.parametrize(
    ("version", "warning"),
    [("v16.0.0", "Node 16 is end-of-life"), ("v99.0.0", "not been tested with node v99")],
)
def test_no_version_of_node_is_warned_of(version: str, warning: str, tmp_path: Path) -> None:
    assert warning in stderr_of(IMPORT, version, tmp_path)
    assert stderr_of(SILENCED, version, tmp_path) == ""


def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18")
    monkeypatch.delenv("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", raising=False)
    before = dict(os.environ)
    with silenced_node_warnings():
        assert os.environ["JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"]
    assert dict(os.environ) == before


def test_cost_without_node_names_what_is_missing(tmp_path: Path) -> None:
    words = ["cost", str(PROJECT / "pipelines" / "shop.yaml"), "--environment", "trial", "--json"]
    run = subprocess.run(
        [sys.executable, "-m", "cdclake.cli.main", *words],
        env={"PATH": str(tmp_path), "CDCLAKE_HOME": str(tmp_path)},
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    error = json.loads(run.stdout)["error"]
    assert run.returncode == 2
    assert error["message"].startswith("'node' was not found") and "Node.js" in error["remedy"]
    assert "Traceback" not in run.stderr
