"""Versions of Java that the components of a local lake run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

OLDEST_JAVA, TESTED_JAVA, NEWEST_JAVA = 17, 17, 22
INSTALL_JAVA = (
    "install JDK 17 (apt-get install openjdk-17-jdk-headless), and set JAVA_HOME to it if others"
    " are installed"
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # Java 8 and earlier report 1.8


def java_program() -> str | None:
    """Return the `java` of JAVA_HOME if that is set, otherwise of the PATH; None if it has none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def java_version(program: str) -> int | None:
    """Return the major version of a `java`; None if it prints none."""
    shown = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = _VERSION.search(shown.stdout + shown.stderr)
    return int(found[1]) if found else None


def java_problem(version: int) -> str | None:
    """Return why the components do not run on this version of Java; None if they do."""
    if version < OLDEST_JAVA:
        return f"Java {version} is too old, Debezium needs {OLDEST_JAVA}"
    if version > NEWEST_JAVA:
        # Hadoop calls Subject.getSubject, which throws from JDK 23 on.
        return f"Java {version} is too new, Spark 3.5 with Hadoop 3.3 runs on {NEWEST_JAVA} at most"
    return None
