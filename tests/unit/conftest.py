"""Fixtures of all unit tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest


@pytest.fixture(autouse=True, scope="module")
def own_environment() -> Iterator[None]:
    """Have no lake's addresses, and leave none: a lake that is opened sets them for its process."""
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
            del os.environ[name]
        yield
