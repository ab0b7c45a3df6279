"""Access to the server, by its rules."""

from __future__ import annotations

import pytest
from trino.exceptions import TrinoUserError

from cdclake.local.trino.server import Trino


def test_other_users_are_refused(engine: Trino) -> None:
    assert engine.rows("SELECT 1") == [(1,)]
    for user in ("test", engine.user[:-1]):
        with pytest.raises(TrinoUserError, match="Access Denied"):
            Trino(engine.port, user).rows("SELECT 1")
