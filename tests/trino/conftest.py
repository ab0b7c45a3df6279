"""One Trino for all tests of a process, if its jars are there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdclake.local.trino.server import JARS as PROFILE
from cdclake.local.trino.server import Trino, running_trino
from cdclake.places import JARS


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """The server, which is gone after the session, whether it failed or not."""
    if not (JARS / PROFILE).is_dir():
        pytest.skip("no jars/trino: run `make trino-jars`")
    with running_trino(tmp_path_factory.mktemp("trino")) as server:
        yield server
