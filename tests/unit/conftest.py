"""Fixtures of all unit tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Undo what a test changes: a lake that is opened directs the AWS clients of its process."""
    with patch.dict(os.environ):
        yield
