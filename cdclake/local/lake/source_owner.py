"""Identity of a local lake as an owner of objects in a source."""

from __future__ import annotations

import hashlib
import socket

from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.postgres.ownership import Owner

_DIGITS = 16


def owner_of(home: Home, state: LakeState) -> Owner:
    """Return the lake of a home as an owner; the home may move, since its path is only shown."""
    if "home_id" not in home.secret_names():
        return Owner("local:none", f"{home.path}, which has no lake yet", state.in_source)
    # Everyone in the source can read the mark, but `home_id` is a secret.
    digest = hashlib.sha256(home.secret("home_id").encode()).hexdigest()
    return Owner(
        id=f"local:{digest[:_DIGITS]}",
        name=f"{home.path} on {socket.gethostname()}",
        made_unmarked=state.in_source,
    )
