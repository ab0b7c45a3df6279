"""Templates from the CDK's output: those of the deployment and of the last synthesis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdclake.cost.cloud_assembly import read_templates
from cdclake.errors import InputError


def write(folder: Path, *names: str) -> None:
    """Write a cloud assembly of these stacks."""
    artifacts: dict[str, Any] = {"Tree": {"type": "cdk:tree"}}
    for name in names:
        file = f"{name}.template.json"
        (folder / file).write_text(json.dumps({"Resources": {name: {}}}))
        artifacts[name] = {"type": "aws:cloudformation:stack", "properties": {"templateFile": file}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))


def test_templates_are_those_of_the_last_synthesis(tmp_path: Path) -> None:
    write(tmp_path, "shop-dev-lake")
    write(tmp_path, "shop-prod-lake", "shop-prod-size", "other-lake")
    found = read_templates(tmp_path, "shop-prod")
    assert found == {
        name: {"Resources": {name: {}}} for name in ("shop-prod-lake", "shop-prod-size")
    }
    with pytest.raises(InputError, match="has no stack of shop-dev"):
        read_templates(tmp_path, "shop-dev")


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no templates that can be read") as refused:
        read_templates(tmp_path, "shop")
    assert "cdk.out" in refused.value.remedy
