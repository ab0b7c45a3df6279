"""Each variant of the deployment is synthesised once; without Node.js there is no CDK to ask."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.synth.deployments import Synthesized

# The CDK's Python modules cannot even be imported without it; `test_node.py` says so.
collect_ignore = [
    file.name
    for file in Path(__file__).parent.glob("test_*.py")
    if file.name != "test_node.py" and shutil.which("node") is None
]


@pytest.fixture(scope="session")
def variants(tmp_path_factory) -> dict[str, Synthesized]:
    """Everything created, everything existing, and as small as can be."""
    from tests.synth.deployments import VARIANTS, synthesize

    return {
        name: synthesize(text, tmp_path_factory.mktemp(name)) for name, text in VARIANTS.items()
    }


@pytest.fixture(scope="session")
def created(variants: dict[str, Synthesized]) -> Synthesized:
    """The deployment with network, source and Kafka of its own."""
    return variants["created"]
