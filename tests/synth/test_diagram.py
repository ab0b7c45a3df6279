"""The drawing of the stacks is that of the templates, and shows every stack and what it needs."""

from __future__ import annotations

import json

from scripts.stacks_diagram import ENVIRONMENT, PAGE, PIPELINE, drawing, page
from tests.synth.deployments import synthesize


def test_the_drawing_is_the_newest(tmp_path):
    deployed = synthesize(PIPELINE.read_text(), tmp_path, ENVIRONMENT)
    assert PAGE.read_text() == page(deployed.folder), "run `make docs`"


def test_what_follows_from_other_arrows_is_not_drawn(tmp_path):
    needs = {"a": [], "b": ["a", "a.assets"], "c": ["a", "b"]}
    artifacts = {
        name: {"type": "aws:cloudformation:stack", "dependencies": others}
        for name, others in needs.items()
    }
    manifest = {"artifacts": {**artifacts, "a.assets": {"type": "cdk:asset-manifest"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    bucket, role = {"Type": "AWS::S3::Bucket"}, {"Type": "AWS::IAM::Role"}
    for name in needs:
        resources = {"One": bucket, "Two": bucket, "Role": role}
        (tmp_path / f"{name}.template.json").write_text(json.dumps({"Resources": resources}))
    drawn = drawing(tmp_path).splitlines()
    assert [line.strip() for line in drawn if "-->" in line] == ["a --> b", "b --> c"]
    assert '  a["<b>a</b><br/>2 buckets"]' in drawn
