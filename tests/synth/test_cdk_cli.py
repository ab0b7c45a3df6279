"""`cdk synth` as a user runs it: offline, without credentials or Docker, twice the same bytes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.synth.deployments import EXISTING, PIPELINE, PROJECT, read_assembly
from tests.unit.runbooks import commands

pytestmark = pytest.mark.synth

CDK = PROJECT / "node_modules" / ".bin" / "cdk"
FILE = PIPELINE + EXISTING + "environments:\n" + "".join(f"  {n}:\n    {v}\n" for n, v in {
    "prod": "aws: {log_days: 90}",
    "dev": "aws: {log_days: 7}",
}.items())  # fmt: skip


def cdk_synth(file: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Nowhere to ask, nobody to be, and a Docker that fails."""
    dead_end = "http://127.0.0.1:9"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(out.parent),
        "HTTPS_PROXY": dead_end,
        "HTTP_PROXY": dead_end,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DOCKER": "/bin/false",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
    }
    command = [str(CDK), "synth", "--quiet", "--output", str(out)]
    return subprocess.run(
        [*command, "-c", f"pipeline={file}", *arguments],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


PARTS = (
    "network", "source", "streaming", "tables-1", "cdc", "lake", "processing", "observability",
    "query", "queries-1", "glue",
)  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pipeline") / "pipeline.yaml"
    file.write_text(FILE)
    return file


def test_two_runs_write_the_same_bytes(pipeline, tmp_path):
    for run in ("first", "second"):
        done = cdk_synth(pipeline, tmp_path / run)
        assert done.returncode == 0, done.stderr
    first, second = contents(tmp_path / "first"), contents(tmp_path / "second")
    assert any(name.endswith(".template.json") for name in first)
    assert [name for name in first if first[name] != second.get(name)] == []
    assert first.keys() == second.keys()


def test_an_environment_is_a_deployment_of_its_own(pipeline, tmp_path):
    done = cdk_synth(pipeline, tmp_path / "out", "-c", "environment=prod")
    assert done.returncode == 0, done.stderr
    templates = read_assembly(tmp_path / "out").templates
    assert set(templates) == {f"shop-prod-{p}" for p in PARTS}
    assert '"shop/source"' not in str(templates)


def test_what_cannot_work_ends_it_with_place_and_remedy(tmp_path):
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.replace("{database: shop}", "{database: my shop}"))
    done = cdk_synth(file, tmp_path / "out")
    assert done.returncode != 0
    assert f"{file}:3:20: RDS cannot create a database named 'my shop'; use" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_pinned_cli_has_every_option_of_the_runbooks(tmp_path):
    lines = [line for _, line in commands("npx cdk") if line.startswith("npx cdk deploy ")]
    options = {word for line in lines for word in line.split() if word[:2] == "--"}
    assert "--revert-drift" in options
    command, environment = [str(CDK), "deploy", "--help"], {**os.environ, "HOME": str(tmp_path)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    known = set(re.findall(r"--[a-z-]+", shown.stdout))
    # yargs takes `--no-NAME` for every boolean.
    assert {option.replace("--no-", "--") for option in options} <= known
