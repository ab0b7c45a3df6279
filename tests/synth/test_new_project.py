"""A project of `cdclake new`: its app synthesizes, and its own stack gets the lake's handles."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App

import cdclake
from cdclake.config.schema import render_schema
from cdclake.scaffold.new_project import project_files, write_project
from tests.source_tree import PROJECT

# A bucket that accepts unencrypted requests, in the project's own stack.
IMPORT = "from aws_cdk.aws_cloudwatch_actions import SnsAction\n"
PLANTED = {
    IMPORT: IMPORT + "from aws_cdk.aws_s3 import CfnBucket\n",
    "        sizes = {\n": '        CfnBucket(self, "Exports")\n        sizes = {\n',
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "shop-lake"
    write_project(folder, project_files("shop-lake", render_schema(), None))
    return folder


@pytest.fixture(scope="module")
def output(project: Path) -> Path:
    """The output of the app, started as the CDK CLI starts it."""
    out = project / "cdk.out"
    context = json.loads((project / "cdk.json").read_text())["context"]
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=project,
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "CDK_OUTDIR": str(out),
            "CDK_CONTEXT_JSON": json.dumps({**context, "environment": "trial"}),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.synth
def test_own_stack_is_told_the_bucket_and_the_topic(output: Path) -> None:
    template = json.loads((output / "shop-lake-trial-size.template.json").read_text())
    [alarm] = [each["Properties"] for each in template["Resources"].values()]
    [topic] = alarm["AlarmActions"]
    measured = {}
    for metric in (each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each):
        bucket, kind = metric["Metric"]["Dimensions"]
        assert bucket["Value"]["Fn::ImportValue"].startswith("shop-lake-trial-lake:")
        measured[kind["Value"]] = metric["Period"]
    tiers = {f"IntelligentTiering{tier}Storage" for tier in ("FA", "IA", "AIA")}
    assert measured == dict.fromkeys({"StandardStorage", *tiers}, 86_400)
    assert topic["Fn::ImportValue"].startswith("shop-lake-trial-observability:")
    assert alarm["AlarmName"] == "shop-lake-trial-size"


@pytest.mark.synth
def test_own_stack_is_deployed_after_those_that_it_uses(output: Path) -> None:
    artifacts = json.loads((output / "manifest.json").read_text())["artifacts"]
    needed = {"shop-lake-trial-lake", "shop-lake-trial-observability"}
    assert needed <= set(artifacts["shop-lake-trial-size"]["dependencies"])


@pytest.mark.synth
def test_own_test_fails_for_a_finding_of_cdk_nag(project: Path, tmp_path: Path) -> None:
    planted = tmp_path / "shop-lake"
    shutil.copytree(project, planted)
    stack = planted / "stacks" / "lake_size.py"
    text = stack.read_text()
    for plain, bucket in PLANTED.items():
        assert text.count(plain) == 1
        text = text.replace(plain, bucket)
    stack.write_text(text)
    assert nag_test(project).returncode == 0
    done = nag_test(planted)
    assert done.returncode == 1
    assert "shop-lake-trial-size/Exports" in done.stdout and "AwsSolutions-S10" in done.stdout


def nag_test(project: Path) -> subprocess.CompletedProcess[str]:
    """Run the project's own test of cdk-nag's findings, for one environment."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "synthesized and trial"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_file_that_cannot_be_deployed_ends_the_app(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("version: 1\nname: shop\ntables: {}\n")
    with pytest.raises(SystemExit) as ended:
        cdclake.build(App(outdir=str(tmp_path / "out")), file)
    assert ended.value.code == 2
    assert f"{file}:3:" in capsys.readouterr().err
