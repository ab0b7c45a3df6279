"""Who runs PostgreSQL, and where that user can reach its binaries and its data.

PostgreSQL refuses root. Run by an ordinary user, everything is in the home. Run by root, it runs as
`postgres` (or `nobody`), in the home when that user can walk there, else under /var/lib/cdclake:
a clone in /root is closed to everyone but root, and stays so.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdclake.errors import InputError
from cdclake.local.components.installed import jar_folder
from cdclake.local.process.home import Home

OUTSIDE = Path("/var/lib/cdclake")
OWNER_FILE = "home"  # inside an outside folder: whose it is


@dataclass(frozen=True)
class PostgresPlace:
    """Where the binaries and the data are, and the user to become (None: the one we are)."""

    user: str | None
    binaries: Path
    base: Path

    @property
    def data(self) -> Path:
        return self.base / "data"

    def give(self, path: Path) -> None:
        """Make that user its owner; nothing to do when we are that user."""
        if self.user is not None:
            account = pwd.getpwnam(self.user)
            os.chown(path, account.pw_uid, account.pw_gid)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command as that user, with no group but its own."""
        account = pwd.getpwnam(self.user) if self.user else None
        return subprocess.run(
            argv,
            cwd="/",
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "TZ": "UTC"},
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            capture_output=True,
            text=True,
            check=False,
        )

    def reaches(self, path: Path) -> bool:
        return self.run("test", "-x", str(path)).returncode == 0


def place(home: Home) -> PostgresPlace:
    """The place of this home; for root it looks, and copies the binaries once if it must."""
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
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise InputError(
        "PostgreSQL does not run as root, and there is no user `postgres` or `nobody`",
        "run cdclake as an ordinary user, or `useradd --system postgres`",
    )


def outside_folder(home: Home) -> Path:
    """One for each home; the home's id keeps a lake that was removed by hand apart from its
    successor at the same path, which has another password."""
    identity = f"{home.path}\n{home.secret('home_id')}"
    return OUTSIDE / hashlib.sha256(identity.encode()).hexdigest()[:16]


def make_base(home: Home, where: PostgresPlace) -> None:
    """The folder that holds the data, owned by the user; leftovers of removed homes go."""
    if where.base.parent == OUTSIDE:
        OUTSIDE.mkdir(mode=0o755, exist_ok=True)
        remove_orphans(home, keep=where.base)
    where.base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if where.base.parent == OUTSIDE:
        (where.base / OWNER_FILE).write_text(str(home.path))
    where.give(where.base)


def remove_orphans(home: Home, keep: Path | None = None) -> None:
    """Remove the outside data of this home's earlier lives and of homes that are no more.

    Another lake that starts may remove the same at the same time.
    """
    for owner in OUTSIDE.glob(f"*/{OWNER_FILE}"):
        try:
            named = Path(owner.read_text())
        except FileNotFoundError:
            continue
        if owner.parent != keep and (named == home.path or not named.exists()):
            shutil.rmtree(owner.parent, onerror=_raise_unless_gone)


def _raise_unless_gone(
    _function: object, _path: str, error: tuple[Any, BaseException, Any]
) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def purge(home: Home) -> None:
    """Forget the data outside the home, if there is any; the lake must be down."""
    if os.geteuid() == 0 and OUTSIDE.is_dir():
        remove_orphans(home)


def _copied(dist: Path) -> Path:
    """The binaries where every user can read them, named by their content."""
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
