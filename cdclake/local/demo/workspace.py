"""A lake's folder for one demo, gone afterwards whatever happens, unless it is to be kept."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake.local.components import postgres_place
from cdclake.local.demo.interrupts import uninterrupted
from cdclake.local.lake import stack
from cdclake.local.process.home import Home, is_locked, try_lock

_LOCK = "demo.lock"  # held while the demo runs; removed from a home that is kept
_PREFIX = "demo-"


@contextmanager
def demo_home(base: Path, *, keep: bool) -> Iterator[Home]:
    """A new home below `base`; at the end all is stopped and gone, but for a failure's logs.

    `keep` leaves a lake alone that nothing went wrong with.
    """
    remove_forgotten(base)
    home = Home(base / f"{_PREFIX}{secrets.token_hex(3)}")
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
        except BaseException:  # interrupted: nobody wants to read on
            with uninterrupted():
                stack.purge(home)
            raise
        if keep:
            lock.unlink()
            return
        with uninterrupted():
            stack.purge(home)


def remove_forgotten(base: Path) -> None:
    """Stop and remove what demos left behind that were killed before they could."""
    for lock in base.glob(f"{_PREFIX}*/{_LOCK}"):
        with lock.open() as held:
            abandoned = not is_locked(held.fileno())
        if abandoned:
            stack.purge(Home(lock.parent))


def _remove_data(home: Home) -> None:
    """Keep the logs, which the error names; the next demo removes them."""
    stack.shut_down(home)
    postgres_place.purge(home)
    shutil.rmtree(home.path / "data", ignore_errors=True)
