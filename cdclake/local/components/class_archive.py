"""Class data sharing archives of Java's classes, which halve the start time of later JVMs.

A JVM dumps such an archive on request (JDK 17, `VM.cds dynamic_dump`). When it starts with one, it
validates it and ignores it if it does not fit. An archive is only a cache, so an error in handling
one is not a failure.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import psutil

from cdclake.local.process.home import Home, write_atomically
from cdclake.places import BUILD, IMPORT_ROOT, JAR_LOCK, JARS

ARCHIVES = BUILD / "java-classes"
_MADE_FROM = (JAR_LOCK, JARS / ".pom.sha256", IMPORT_ROOT / ".venv" / ".setup")
_DUMP_TIMEOUT_S = 120.0

log = logging.getLogger(__name__)


def option(home: Home, name: str, java: str) -> str:
    """Write an argument file with the JVM's archive options, and return the option that reads it.

    If there is no archive yet, the options prepare the JVM to dump one later. They are in a file so
    that the command stays the same: a changed command would restart the running process.
    """
    archive = _path(name, java)
    found = f'"-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    arguments = home.run / f"java-{name}.args"
    write_atomically(arguments, found if archive.is_file() else "-XX:+RecordDynamicDumpInfo")
    return f"@{arguments}"


def is_missing(name: str, java: str) -> bool:
    """Return True if there is no archive for the JVMs of that name yet."""
    return not _path(name, java).is_file()


def keep(name: str, java: str, pid: int) -> bool:
    """Dump the archive of the JVM that is the process `pid` or a descendant of it.

    The dump takes some seconds and may end the JVM, so call it only for a JVM that is no longer
    needed.

    Returns:
        True if an archive was written.
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
        log.warning("could not archive the classes of %s: %s", name, error)
        return False
    if not fresh.exists():
        log.warning("could not archive the classes of %s: %s%s", name, said.stdout, said.stderr)
        return False
    fresh.replace(archive)
    return True


def _path(name: str, java: str) -> Path:
    """Return the archive's path, which depends on the Java version, the jars and the packages."""
    texts = [os.path.realpath(java), sys.prefix]
    texts += [path.read_text() if path.is_file() else "" for path in _MADE_FROM]
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
