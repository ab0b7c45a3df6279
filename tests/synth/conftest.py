"""Each deployment is synthesised once; without Node.js there is no CDK to ask."""

from __future__ import annotations

import shutil
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
    """The deployment of a pipeline file, synthesised once whoever asks; nobody changes it."""
    from tests.synth.deployments import synthesize

    @cache
    def once(text: str) -> Synthesized:
        return synthesize(text, tmp_path_factory.mktemp("deployment"))

    return once


@pytest.fixture(scope="session")
def variants(deploy: Deploy) -> dict[str, Synthesized]:
    """Everything created, everything existing, as small as can be; by Firehose; web logs alone."""
    from tests.synth.deployments import VARIANTS

    return {name: deploy(text) for name, text in VARIANTS.items()}


@pytest.fixture(scope="session")
def created(deploy: Deploy) -> Synthesized:
    """The deployment with network, source and Kafka of its own."""
    from tests.synth.deployments import PIPELINE

    return deploy(PIPELINE)
