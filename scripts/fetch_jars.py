#!/usr/bin/env python3
"""Fetch every jar of pom.xml into jars/<profile>/ and unpack PostgreSQL into jars/postgres-dist/.

Runs on the system's Python with the standard library alone, before there is a virtual environment.
A stamp (the SHA-256 of pom.xml) makes the second run free; a fetch that breaks off leaves the old
folders as they were, because each profile is copied beside its place and then renamed.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
POM = ROOT / "pom.xml"
JARS = ROOT / "jars"
STAMP = JARS / ".pom.sha256"
PROFILES = ("postgres", "kafka", "connect", "debezium", "spark")
POSTGRES_DIST = "postgres-dist"
INSTALL = "apt-get install openjdk-17-jdk-headless maven"


class SetupError(Exception):
    """The jars cannot be fetched; the message says why and what to do."""


def main() -> int:
    """Exit code 0 when every jar is in place, 1 with one line of reason otherwise."""
    try:
        if is_current():
            say("jars: up to date")
            return 0
        check_tools()
        fetch_all()
    except (SetupError, OSError) as err:
        sys.stderr.write(f"fetch_jars: {err}\n")
        return 1
    return 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def pom_digest() -> str:
    return hashlib.sha256(POM.read_bytes()).hexdigest()


def is_current() -> bool:
    """Whether the jars were fetched from exactly this pom.xml and are all still there."""
    if not STAMP.is_file() or STAMP.read_text().strip() != pom_digest():
        return False
    initdb = JARS / POSTGRES_DIST / "bin" / "initdb"
    return initdb.is_file() and all(any((JARS / p).glob("*.jar")) for p in PROFILES)


def check_tools() -> None:
    """Refuse early, by name, what Maven would refuse late and at length."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise SetupError(f"`{tool}` is not on the PATH; install it: {INSTALL}")
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    banner = answer.stderr + answer.stdout
    found = re.search(r'version "(\d+)(?:\.(\d+))?', banner)
    if found is None:
        raise SetupError(f"`java -version` said nothing usable: {banner.strip()!r}; {INSTALL}")
    # Up to Java 8 the version read 1.8; since then the first number is the version.
    major = int(found[2] or 0) if found[1] == "1" else int(found[1])
    if major < 17:
        raise SetupError(f"Java {major} is too old, Debezium needs 17 or newer; {INSTALL}")


def fetch_all() -> None:
    JARS.mkdir(exist_ok=True)
    STAMP.unlink(missing_ok=True)
    for profile in PROFILES:
        say(f"jars: {profile}")
        fetch(profile)
    unpack_postgres()
    STAMP.write_text(pom_digest() + "\n")


def fetch(profile: str) -> None:
    """Copy one profile's jars with strict checksums (-C); all of them or none."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{profile}-", dir=JARS))
    try:
        command = ["mvn", "-B", "-C", "-q", "-f", str(POM), "-P", profile]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={fresh}"], capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or not any(fresh.glob("*.jar")):
            reason = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise SetupError(
                f"Maven could not fetch profile {profile!r} (exit {done.returncode}); "
                f"check the network and ~/.m2/settings.xml. Maven said:\n{reason}"
            )
        put_in_place(fresh, JARS / profile)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def unpack_postgres() -> None:
    """The binaries stand in the jar as one .txz; PostgreSQL's own user must read them."""
    jar = next((JARS / "postgres").glob("embedded-postgres-binaries-*.jar"))
    fresh = Path(tempfile.mkdtemp(prefix=f".{POSTGRES_DIST}-", dir=JARS))
    try:
        with zipfile.ZipFile(jar) as outer:
            name = next(n for n in outer.namelist() if n.endswith(".txz"))
            packed = io.BytesIO(outer.read(name))
        with tarfile.open(fileobj=packed, mode="r:xz") as inner:
            inner.extractall(fresh)
        put_in_place(fresh, JARS / POSTGRES_DIST)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def put_in_place(fresh: Path, place: Path) -> None:
    """Replace `place` by `fresh`, readable by everyone (mkdtemp makes folders private)."""
    fresh.chmod(0o755)
    if place.exists():
        shutil.rmtree(place)
    fresh.rename(place)


if __name__ == "__main__":
    sys.exit(main())
