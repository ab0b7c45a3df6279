"""Folders of the package: what it reads, what it caches, and the user's project.

In a clone of the repository, caches and the default lake are in the clone. A wheel contains the
files of `resources/` instead of the links to them, has its caches in the platform's cache folder,
and the default lake in the user's project.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IMPORT_ROOT = PACKAGE.parent  # the clone or site-packages; started processes import from here
RESOURCES = PACKAGE / "resources"
JAR_LOCK = RESOURCES / "jars.lock"
IS_INSTALLED = not (PACKAGE / "jobs").is_symlink()  # a wheel has the files themselves
CACHE_KEY = "CDCLAKE_CACHE"
_DIGEST_DIGITS = 12
# The nearest folder above the current one that has one of these counts. Every lake has the second;
# logs of a failed command and a removed demo leave a `.cdclake` that is no lake.
_MARKS = ("cdk.json", ".cdclake/secrets.properties")


def cache_folder() -> Path:
    """Return the folder of an installation's caches: CDCLAKE_CACHE, or the platform's."""
    if named := os.environ.get(CACHE_KEY):
        return Path(named).expanduser().resolve()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cdclake"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdclake"


def user_project(start: Path | None = None) -> Path:
    """Return the user's project: the clone, or the nearest folder that looks like a project.

    Without one it is the current folder. Paths in a pipeline file are relative to the project.
    """
    if not IS_INSTALLED:
        return IMPORT_ROOT
    here = Path.cwd() if start is None else start
    return next(
        # Path.exists raises for a `.cdclake` of another user, which this one may not enter.
        (d for d in (here, *here.parents) if any(os.access(d / m, os.F_OK) for m in _MARKS)),
        here,
    )


def other_cache() -> str:
    """Return the end of a remedy for a cache that cannot be used: a clone has no other place."""
    return f", or set {CACHE_KEY} to another folder" if IS_INSTALLED else ""


def fetch_remedy(folder: Path, target: str) -> str:
    """Return the remedy for a folder whose fetched files are missing or wrong.

    Only a clone has a Makefile; an installation fetches every folder that is missing.
    """
    if IS_INSTALLED:
        return f"remove {folder}, and run the command again: it fetches the files"
    return f"run `make {target}` in the project's folder"


def _jars() -> Path:
    """Return the folder of the jars; another version of cdclake may have other ones."""
    if not IS_INSTALLED:
        return IMPORT_ROOT / "jars"
    digest = hashlib.sha256()
    for path in (JAR_LOCK, *sorted(RESOURCES.glob("*.jar"))):
        digest.update(path.read_bytes())
    return cache_folder() / f"jars-{digest.hexdigest()[:_DIGEST_DIGITS]}"


BUILD = cache_folder() / "build" if IS_INSTALLED else IMPORT_ROOT / "build"
JARS = _jars()
