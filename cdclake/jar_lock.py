"""Lock of the jars: `jars.lock` has the SHA-256 of every jar that is fetched, by profile and name.

Maven's checksums come from the repository that serves the jars; this file comes with the code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

LOCK_NAME = "jars.lock"
# Built from java/, so not locked; by profile.
OWN_JARS = {"secrets": "cdclake-connect.jar", "spark": "cdclake-iceberg.jar"}


def parse_jar_lock(text: str) -> dict[str, str]:
    """Parse lines of `SHA-256  profile/name.jar` into digests by name."""
    entries = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {name: digest for digest, name in entries}


def render_jar_lock(jars: Iterable[Path]) -> str:
    """Render the lock of these files, whose folders have the names of their profiles."""
    locked = sorted((jar for jar in jars if jar.name not in OWN_JARS.values()), key=_name)
    header = "# SHA-256 of the jars that `make setup` fetches; `make lock` writes this file.\n"
    return header + "".join(f"{_digest(jar)}  {_name(jar)}\n" for jar in locked)


def unlocked_jars(jars: Iterable[Path], lock: Mapping[str, str]) -> Iterator[str]:
    """Yield a line per jar that the lock lacks or that has another content."""
    for jar in sorted(jars):
        if jar.name in OWN_JARS.values():
            continue
        name, expected = _name(jar), lock.get(_name(jar))
        if expected is None:
            yield f"{name} is not in {LOCK_NAME}"
        elif (found := _digest(jar)) != expected:
            yield f"{name} has the SHA-256 {found}, but {LOCK_NAME} has {expected}"


def _name(jar: Path) -> str:
    return f"{jar.parent.name}/{jar.name}"


def _digest(jar: Path) -> str:
    return hashlib.sha256(jar.read_bytes()).hexdigest()
