"""User that runs PostgreSQL, and the place of its binaries and data.

PostgreSQL refuses to run as root. For an ordinary user everything is in the home. For root, it runs
as `postgres` (or `nobody`): in the home if that user can access it, otherwise under
/var/lib/cdclake. A clone in /root is accessible to root only, and its permissions do not change.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cdclake.errors import InputError
from cdclake.local.components.installed import jar_folder
from cdclake.local.process.home import Home, write_atomically

OUTSIDE = Path("/var/lib/cdclake")
OWNER_FILE = "home"  # in an outside folder: the path of the home that it belongs to
PLACES_FILE = "places"  # device and inode of that home and of each folder above it
DiskPlace = tuple[int, int]  # device and inode


@dataclass(frozen=True)
class PostgresPlace:
    """Paths of binaries and data, and the user to run as (None: the current user)."""

    user: str | None
    binaries: Path
    base: Path

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.base / "data"

    def give(self, path: Path) -> None:
        """Make the user the owner of `path`; do nothing for the current user."""
        if self.user is not None:
            account = pwd.getpwnam(self.user)
            os.chown(path, account.pw_uid, account.pw_gid)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the user, with only the user's primary group."""
        account = pwd.getpwnam(self.user) if self.user else None
        return subprocess.run(
            argv,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"},
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            capture_output=True,
            text=True,
            check=False,
        )

    def reaches(self, path: Path) -> bool:
        """Return True if the user can access `path`."""
        return self.run("test", "-x", str(path)).returncode == 0


def place(home: Home) -> PostgresPlace:
    """Return the place of this home; for root, copy the binaries once if that is necessary."""
    dist = jar_folder("postgres-dist")
    if os.geteuid() != 0:
        return PostgresPlace(None, dist, home.data("postgres"))
    user = unprivileged_user()
    inside = PostgresPlace(user, dist, home.data("postgres"))
    binaries = dist if inside.reaches(dist / "bin" / "initdb") else _copied(dist)
    if inside.reaches(home.data("postgres").parent):
        return PostgresPlace(user, binaries, inside.base)
    return PostgresPlace(user, binaries, outside_folder(home))


def unprivileged_user() -> str:
    """Return the user that runs PostgreSQL for root; raise InputError if there is none."""
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise InputError(
        "PostgreSQL cannot run as root, and the users `postgres` and `nobody` do not exist",
        "run cdclake as an ordinary user, or `useradd --system postgres`",
    )


def outside_folder(home: Home) -> Path:
    """Return the home's folder outside of it.

    Its name depends on the home's id, so that a new lake at the path of a manually removed one,
    which has another password, gets another folder.
    """
    identity = f"{home.path}\n{home.secret('home_id')}"
    return OUTSIDE / hashlib.sha256(identity.encode()).hexdigest()[:16]


def make_base(home: Home, where: PostgresPlace) -> None:
    """Create the base folder, owned by the user, and delete the folders of removed homes."""
    if where.base.parent == OUTSIDE:
        OUTSIDE.mkdir(mode=0o755, exist_ok=True)
        remove_orphans(home, keep=where.base)
    where.base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if where.base.parent == OUTSIDE:
        write_owner(where.base, home)
    where.give(where.base)


def write_owner(base: Path, home: Home) -> None:
    """Write whose folder it is, and where the home and the folders above it are on the disks."""
    (base / OWNER_FILE).write_text(str(home.path))
    places = [[str(folder), *_place_of(folder)] for folder in (home.path, *home.path.parents)]
    write_atomically(base / PLACES_FILE, json.dumps(places))


def _place_of(folder: Path) -> DiskPlace:
    found = folder.stat()
    return found.st_dev, found.st_ino


def remove_orphans(home: Home, keep: Path | None = None) -> None:
    """Remove the outside data of this home's predecessors and of homes that were deleted.

    A home that is missing may be on a disk that is not mounted, so its data is removed only if the
    deletion is certain. Another lake that starts may remove the same folders concurrently.
    """
    for owner in OUTSIDE.glob(f"*/{OWNER_FILE}"):
        try:
            named = Path(owner.read_text())
        except FileNotFoundError:
            continue
        is_gone = named == home.path or not named.exists()
        if owner.parent != keep and is_gone and _is_deleted(owner.parent):
            shutil.rmtree(owner.parent, onerror=_raise_unless_gone)


def _is_deleted(base: Path) -> bool:
    """Return True if the home of this data was certainly deleted, or replaced by another one.

    The lowest folder above the home that still exists must be the one of then, with the same device
    and inode, and the folder that was below it must have been no mount point.
    """
    try:
        places = json.loads((base / PLACES_FILE).read_text())
    except (FileNotFoundError, ValueError):
        return False  # of an earlier version, or removed by another lake
    folders = [(Path(path), (device, inode)) for path, device, inode in places]
    home, was = folders[0]
    if home.exists() and (_place_of(home) == was or _place_of(home)[0] != was[0]):
        return False  # the same home, or a disk that is mounted over it
    for (_, below), (folder, then) in pairwise(folders):
        if folder.exists():
            return _place_of(folder) == then and below[0] == then[0]
    return False


def _raise_unless_gone(
    _function: object, _path: str, error: tuple[Any, BaseException, Any]
) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def purge(home: Home) -> None:
    """Remove the data outside the home, if there is any; the lake must be down."""
    if os.geteuid() == 0 and "home_id" in home.secret_names():
        shutil.rmtree(outside_folder(home), onerror=_raise_unless_gone)


def _copied(dist: Path) -> Path:
    """Copy the binaries to where every user can read them, in a folder named by their digest."""
    digest = hashlib.sha256((dist / "bin" / "postgres").read_bytes()).hexdigest()[:12]
    target = OUTSIDE / f"postgres-{digest}"
    if not target.is_dir():
        OUTSIDE.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = OUTSIDE / f".postgres-{os.getpid()}"
        shutil.copytree(dist, fresh, symlinks=True)
        fresh.chmod(0o755)
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():
                raise
            shutil.rmtree(fresh)  # another lake was first
    return target
