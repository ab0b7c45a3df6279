"""Each deployment is synthesised once; without Node.js there is no CDK to ask."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.synth.deployments import Deploy, Synthesized

# The CDK's Python modules cannot even be imported without it; `test_node.py` says so.
collect_ignore = [
    file.name
    for file in Path(__file__).parent.glob("test_*.py")
    if file.name != "test_node.py" and shutil.which("node") is None
]


@pytest.fixture(scope="session")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Deploy:
    """Synthesize the deployment of a pipeline file once for all workers; tests only read it."""
    from tests.synth.deployments import synthesize_once

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    @cache
    def once(text: str) -> Synthesized:
        return synthesize_once(text, shared / "deployments")

    return once


@pytest.fixture(scope="session")
def variants(deploy: Deploy) -> Mapping[str, Synthesized]:
    """Return `VARIANTS`, each synthesized when a test first reads it."""
    from tests.synth.deployments import Variants

    return Variants(deploy)


@pytest.fixture(scope="session")
def created(deploy: Deploy) -> Synthesized:
    """The deployment with network, source and Kafka of its own."""
    from tests.synth.deployments import PIPELINE

    return deploy(PIPELINE)
