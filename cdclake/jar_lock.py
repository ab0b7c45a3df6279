"""Lock of the jars: `jars.lock` has digest, name and URL of every jar that is fetched.

A name is `profile/file`. Maven's checksums come from the repository that serves the jars; this file
comes with the code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from cdclake.file_state import FileState

LOCK_NAME = "jars.lock"
REPOSITORY = "https://repo1.maven.org/maven2/"
# Built from java/, so not locked; by profile.
OWN_JARS = {"secrets": "cdclake-connect.jar", "spark": "cdclake-iceberg.jar"}
# Large, and each for one feature: `make setup` leaves them out.
OPTIONAL_PROFILES = ("hudi", "iceberg-sink", "trino", "trino-iceberg")


def parse_jar_lock(text: str) -> dict[str, str]:
    """Parse lines of `SHA-256  profile/name.jar  URL` into digests by name."""
    return {name: digest for digest, name, *_ in _entries(text)}


def parse_jar_urls(text: str) -> dict[str, str]:
    """Parse the same lines into URLs by name."""
    return {name: url for _, name, url in _entries(text)}


def _entries(text: str) -> Iterator[list[str]]:
    return (line.split() for line in text.splitlines() if line and not line.startswith("#"))


def render_jar_lock(jars: Iterable[Path], urls: Mapping[str, str]) -> str:
    """Render the lock of these files, whose folders have the names of their profiles."""
    locked = sorted((jar for jar in jars if jar.name not in OWN_JARS.values()), key=jar_name)
    header = "# SHA-256, name and URL of the jars that are fetched; `make lock` writes this file.\n"
    lines = (f"{jar_digest(jar)}  {jar_name(jar)}  {urls[jar_name(jar)]}\n" for jar in locked)
    return header + "".join(lines)


def unlocked_jars(jars: Iterable[Path], lock: Mapping[str, str]) -> Iterator[str]:
    """Yield a line per jar that the lock lacks or that has another content."""
    for jar in sorted(jars):
        if jar.name in OWN_JARS.values():
            continue
        name, expected = jar_name(jar), lock.get(jar_name(jar))
        if expected is None:
            yield f"{name} is not in {LOCK_NAME}"
        elif (found := jar_digest(jar)) != expected:
            yield f"{name} has the SHA-256 {found}, but {LOCK_NAME} has {expected}"


def jar_name(jar: Path) -> str:
    """Return the jar's name in the lock: its profile and its file name."""
    return f"{jar.parent.name}/{jar.name}"


def jar_digest(jar: Path) -> str:
    """Return the SHA-256 of the jar; an unchanged one is read once."""
    return _digest(FileState.of(jar))


@cache
def _digest(jar: FileState) -> str:
    return hashlib.sha256(jar.path.read_bytes()).hexdigest()
