"""The folder of a lake that is removed afterwards, unless it is kept: a demo's, a rehearsal's."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake.interrupts import uninterrupted
from cdclake.local.components import postgres_place
from cdclake.local.lake import stack
from cdclake.local.process.home import TEMPORARY_PREFIX, Home, is_locked, try_lock

_LOCK = "demo.lock"  # held while the demo runs; deleted if the home is kept


@contextmanager
def temporary_home(base: Path, *, keep: bool) -> Iterator[Home]:
    """Create a home below `base`; afterwards stop everything and remove the home.

    After a failure the logs are kept. With `keep`, the lake of a successful demo keeps running.
    """
    remove_forgotten(base)
    is_new = not base.exists()
    home = Home(base / f"{TEMPORARY_PREFIX}{secrets.token_hex(3)}")
    home.create()
    lock = home.path / _LOCK
    with lock.open("w") as held:
        try_lock(held.fileno())
        try:
            yield home
        except Exception:
            with uninterrupted():
                _remove_data(home)
            raise
        except BaseException:  # interrupted: the logs are not needed
            with uninterrupted():
                _remove(home, with_base=is_new)
            raise
        if keep:
            lock.unlink()
            return
        with uninterrupted():
            _remove(home, with_base=is_new)


def remove_forgotten(base: Path) -> None:
    """Stop and remove the lakes of demos that were killed before they could clean up."""
    for lock in base.glob(f"{TEMPORARY_PREFIX}*/{_LOCK}"):
        with lock.open() as held:
            abandoned = not is_locked(held.fileno())
        if abandoned:
            stack.purge(Home(lock.parent))


def _remove(home: Home, *, with_base: bool) -> None:
    """Remove the home; `with_base` also the folder around it, unless another demo is in it."""
    stack.purge(home)
    base = home.path.parent
    if with_base and not any(base.iterdir()):
        base.rmdir()


def _remove_data(home: Home) -> None:
    """Remove all but the logs: the error names them, and the next demo removes them."""
    stack.shut_down(home)
    postgres_place.purge(home)
    shutil.rmtree(home.path / "data", ignore_errors=True)
