"""Java's classes as an earlier JVM loaded them: with them the next starts in half the time.

The JVM writes such an archive of itself when it is asked to (JDK 17, `VM.cds dynamic_dump`), and
checks for itself that it still fits: one that does not is left unread. An archive is only a cache,
so whatever goes wrong with it is no failure.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
from pathlib import Path

import psutil

from cdclake.local.process.home import PROJECT, Home, write_atomically

ARCHIVES = PROJECT / "build" / "java-classes"
_MADE_FROM = (PROJECT / "jars" / ".pom.sha256", PROJECT / ".venv" / ".setup")
_DUMP_TIMEOUT_S = 120.0

log = logging.getLogger(__name__)


def option(home: Home, name: str, java: str) -> str:
    """The JVM's option: an argument file with its archive, or with the wish to make one later.

    By a file, so that the command stays the same: a changed one would restart what runs.
    """
    archive = _path(name, java)
    found = f'"-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    arguments = home.run / f"java-{name}.args"
    write_atomically(arguments, found if archive.is_file() else "-XX:+RecordDynamicDumpInfo")
    return f"@{arguments}"


def is_missing(name: str, java: str) -> bool:
    """Whether JVMs of that name still start without an archive."""
    return not _path(name, java).is_file()


def keep(name: str, java: str, pid: int) -> bool:
    """Write the archive of the JVM at or below the process `pid`.

    Whether one was written. It takes the JVM some seconds, and may be its end: ask only one that
    is not needed any more.
    """
    archive, jcmd = _path(name, java), Path(java).with_name("jcmd")
    running = _jvm(pid, java)
    if running is None or not jcmd.exists():
        return False
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_name(f"{archive.name}.{os.getpid()}")
    command = [str(jcmd), str(running), "VM.cds", "dynamic_dump", str(fresh)]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=_DUMP_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        fresh.unlink(missing_ok=True)
        log.warning("no archive of the classes of %s: %s", name, error)
        return False
    if not fresh.exists():
        log.warning("no archive of the classes of %s: %s%s", name, said.stdout, said.stderr)
        return False
    fresh.replace(archive)
    return True


def _path(name: str, java: str) -> Path:
    """Another Java, other jars or packages: another archive."""
    texts = [os.path.realpath(java), *(p.read_text() if p.is_file() else "" for p in _MADE_FROM)]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    return ARCHIVES / f"{name}-{digest}.jsa"


def _jvm(pid: int, java: str) -> int | None:
    wanted = os.path.realpath(java)
    try:
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            if os.path.realpath(each.exe()) == wanted:
                return each.pid
    except psutil.Error:
        return None
    return None
