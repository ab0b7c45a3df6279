#!/usr/bin/env python3
"""Fetch every jar of pom.xml into jars/<profile>/ and unpack PostgreSQL into jars/postgres-dist/.

Two jars are built here from java/: cdclake's extensions of Connect and of Iceberg's file access.

The script runs on the system's Python with only the standard library, before a virtual environment
exists. A stamp (the SHA-256 of pom.xml and java/) makes a second run a no-op. An interrupted fetch
leaves the old folders unchanged, because each profile is copied to a temporary folder, compared
with the SHA-256 sums in jars.lock and then renamed. With `--check` the script fetches nothing and
prints missing tools, one per line. With `--lock` it accepts any content and writes jars.lock. With
`--optional NAME` it fetches one profile that only one feature needs.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cdclake.jar_cache import POSTGRES_DIST, put_in_place, unpack_postgres
from cdclake.jar_lock import (
    LOCK_NAME,
    OPTIONAL_PROFILES,
    OWN_JARS,
    REPOSITORY,
    jar_name,
    parse_jar_lock,
    render_jar_lock,
    unlocked_jars,
)
from cdclake.java_version import INSTALL_JAVA, java_problem, java_program, java_version

ROOT = Path(__file__).resolve().parents[1]
POM = ROOT / "pom.xml"
JARS = ROOT / "jars"
JAVA = ROOT / "java"
BUILT = ROOT / "build" / "java"
STAMP = JARS / ".pom.sha256"
LOCK = ROOT / LOCK_NAME
PROFILES = (
    "postgres",
    "kafka",
    "connect",
    "debezium",
    "secrets",
    "with-glue",
    "with-apicurio",
    "spark",
    "msk",
)
OPTIONAL = (
    *OPTIONAL_PROFILES,
    # PostgreSQL for the other platforms that an installation may be on.
    *("postgres-darwin-amd64", "postgres-darwin-arm64", "postgres-linux-arm64"),
)
INSTALL_MAVEN = "install Maven 3.6.3 or newer: apt-get install maven"
# Resolving consists of waiting for many small files, in JVMs that live for seconds.
MAVEN_OPTIONS = "-XX:TieredStopAtLevel=1 -Dmaven.artifact.threads=10"


class SetupError(Exception):
    """Error that the jars cannot be fetched; the message has the reason and the remedy."""


def main() -> int:
    """Fetch the jars; return 0 if all are in place, otherwise print the reasons and return 1."""
    if "--check" in sys.argv[1:]:
        problems = list(missing_tools())
        for problem in problems:
            say(problem)
        return 1 if problems else 0
    writes_lock = "--lock" in sys.argv[1:]
    try:
        if "--optional" in sys.argv[1:]:
            fetch_optional(sys.argv[-1], parse_jar_lock(LOCK.read_text()))
            return 0
        if is_current() and not writes_lock:
            say("jars: up to date")
            return 0
        if problems := list(missing_tools()):
            raise SetupError("\n".join(problems))
        if writes_lock:
            write_lock()
        else:
            fetch_all(parse_jar_lock(LOCK.read_text()))
    except (SetupError, OSError) as err:
        sys.stderr.write(f"fetch_jars: {err}\n")
        return 1
    return 0


def say(line: str) -> None:
    """Print a line immediately."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def digest() -> str:
    """Compute the digest of everything that the jars depend on."""
    sources = sorted(path for path in JAVA.rglob("*") if path.is_file())
    parts = [hashlib.sha256(path.read_bytes()).digest() for path in (POM, LOCK, *sources)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def is_current() -> bool:
    """Return True if the jars match pom.xml, jars.lock and java/ and are all present."""
    if not STAMP.is_file() or STAMP.read_text().strip() != digest():
        return False
    initdb = JARS / POSTGRES_DIST / "bin" / "initdb"
    return initdb.is_file() and all(any((JARS / p).glob("*.jar")) for p in PROFILES)


def missing_tools() -> Iterator[str]:
    """Yield a line per missing or outdated tool, before Maven fails late and at length."""
    program = java_program()
    java = java_version(program) if program else None
    if java is None:
        yield f"java was not found or cannot be run; {INSTALL_JAVA}"
    elif problem := java_problem(java):
        yield f"{problem}; {INSTALL_JAVA}"
    maven = maven_version() if shutil.which("mvn") else None
    if maven is None:
        yield f"mvn was not found or cannot be run; {INSTALL_MAVEN}"
    elif maven < (3, 6):
        yield f"Maven {maven[0]}.{maven[1]} is too old; {INSTALL_MAVEN}"


def maven_version() -> tuple[int, int] | None:
    """Return the first two numbers of Maven's version; None if it prints none."""
    answer = subprocess.run(["mvn", "-v"], capture_output=True, text=True, check=False)
    found = re.search(r"Apache Maven (\d+)\.(\d+)", answer.stdout + answer.stderr)
    return (int(found[1]), int(found[2])) if found else None


def all_jars() -> list[Path]:
    """List the fetched jars."""
    return [jar for profile in (*PROFILES, *OPTIONAL) for jar in (JARS / profile).glob("*.jar")]


def write_lock() -> None:
    """Fetch the jars of all profiles, whatever they are, and write their lock."""
    urls = fetch_all(None)
    for profile in OPTIONAL:
        urls |= fetch(profile, None)
    LOCK.write_text(render_jar_lock(all_jars(), urls))
    STAMP.write_text(digest() + "\n")


def fetch_all(lock: Mapping[str, str] | None) -> dict[str, str]:
    """Fetch the profiles concurrently, since most time is spent waiting for the repository.

    Without a lock any content is accepted. Return the URLs by the names of the jars.
    """
    JARS.mkdir(exist_ok=True)
    STAMP.unlink(missing_ok=True)
    first, *others = PROFILES
    urls = fetch(first, lock)  # alone, since it downloads Maven's plugin, which all profiles need
    with ThreadPoolExecutor(len(PROFILES)) as pool:
        steps = [pool.submit(fetch, profile, lock) for profile in others]
        unpacking = pool.submit(unpack_postgres, JARS / "postgres", JARS / POSTGRES_DIST)
        for step in steps:
            urls |= step.result()
        unpacking.result()
    STAMP.write_text(digest() + "\n")
    return urls


def fetch_optional(profile: str, lock: Mapping[str, str]) -> None:
    """Fetch one of the optional profiles, unless its jars are those of the lock already."""
    if profile not in OPTIONAL:
        raise SetupError(f"no optional jars {profile!r}; choose one of {', '.join(OPTIONAL)}")
    jars = list((JARS / profile).glob("*.jar"))
    locked = {name for name in lock if name.startswith(f"{profile}/")}
    if {f"{profile}/{jar.name}" for jar in jars} == locked and not any(unlocked_jars(jars, lock)):
        say(f"jars: {profile} is up to date")
        return
    JARS.mkdir(exist_ok=True)
    fetch(profile, lock)


def fetch(profile: str, lock: Mapping[str, str] | None) -> dict[str, str]:
    """Copy one profile's jars, including the one built here, with strict checksums (-C).

    Either all of them are copied or none. Return the URLs by the names of the jars.
    """
    folder = Path(tempfile.mkdtemp(prefix=f".{profile}-", dir=JARS))
    layout, fresh = folder / "layout", folder / profile
    fresh.mkdir()
    try:
        if profile in OWN_JARS:
            built = BUILT / profile
            shutil.rmtree(built, ignore_errors=True)  # removes classes of deleted sources
            run_maven(profile, "package")
            shutil.copy(built / OWN_JARS[profile], fresh)
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        copy += ["-Dmdep.useRepositoryLayout=true", f"-DoutputDirectory={layout}"]
        run_maven(profile, *copy)
        urls = {}
        for jar in layout.rglob("*.jar"):
            urls[jar_name(fresh / jar.name)] = REPOSITORY + jar.relative_to(layout).as_posix()
            jar.rename(fresh / jar.name)
        if not any(fresh.glob("*.jar")):
            raise SetupError(f"profile {profile!r} of pom.xml has no jars")
        if lock is not None:
            check_lock(fresh, lock)
        put_in_place(fresh, JARS / profile)
        say(f"jars: {profile} fetched")
        return urls
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_lock(folder: Path, lock: Mapping[str, str]) -> None:
    """Raise SetupError if a jar of the folder is not the locked one."""
    if problems := list(unlocked_jars(folder.glob("*.jar"), lock)):
        raise SetupError(
            "\n".join(problems)
            + "\nthe repository served something else than this version of cdclake was made with: "
            "do not use it, and report it; after a change of pom.xml run `make lock`"
        )


def run_maven(profile: str, *goals: str) -> None:
    """Run goals for one profile; raise SetupError with the end of Maven's output if they fail."""
    command = ["mvn", "-B", "-C", "-q", "-f", str(POM), "-P", profile, *goals]
    options = f"{MAVEN_OPTIONS} {os.environ.get('MAVEN_OPTS', '')}"
    done = subprocess.run(
        [*command, *local_repository()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MAVEN_OPTS": options},
    )
    if done.returncode != 0:
        reason = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise SetupError(
            f"Maven failed with {goals[0]} of profile {profile!r} (exit {done.returncode}); "
            f"check the network and ~/.m2/settings.xml. Maven said:\n{reason}"
        )


def local_repository() -> list[str]:
    """Return Maven's option for a repository in jars/, if the user has no writable home.

    Java takes the home from the user database and ignores HOME.
    """
    try:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        home = Path("/nonexistent")
    kept = home / ".m2"
    if os.access(kept if kept.exists() else home, os.W_OK):
        return []
    return [f"-Dmaven.repo.local={JARS / '.m2'}"]


if __name__ == "__main__":
    sys.exit(main())
