"""Each variant of the deployment is synthesised once; without Node.js there is no CDK to ask."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.synth.deployments import Synthesized

# The CDK's Python modules cannot even be imported without it.
collect_ignore_glob = [] if shutil.which("node") else ["test_*.py"]


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
