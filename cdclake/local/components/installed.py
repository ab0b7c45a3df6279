"""Prerequisites of the components on this machine, and the environment they start with."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from cdclake.errors import InputError
from cdclake.jar_cache import POSTGRES_DIST, ensure_fetched
from cdclake.java_version import java_problem, java_program, java_version
from cdclake.local.components import class_archive, jaas
from cdclake.local.process.credentials import Login
from cdclake.local.process.home import Home, write_atomically
from cdclake.local.process.supervisor_client import is_supervisor_alive
from cdclake.places import JARS, fetch_remedy

LOG4J = Path(__file__).resolve().parent / "log4j.properties"
REGION = "us-east-1"
_LAKE_PROFILES = ("connect", "debezium", "kafka", POSTGRES_DIST, "secrets", "spark")
PASSED_ON = ("PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR")


def check_system() -> None:
    """Raise InputError unless this is Linux: the components start on no other system."""
    if (system := platform.system()) != "Linux":
        raise InputError(
            f"the local lake does not start on {system}: its processes end with their supervisor by"
            " prctl, which only Linux has",
            "use Linux on amd64, or a container with it",
        )


def jar_folder(profile: str) -> Path:
    """Return the profile's folder in jars/, fetched if that is done on demand.

    Raise InputError if it is missing.
    """
    folder = ensure_fetched(JARS / profile)
    if not folder.is_dir():
        raise InputError(f"{folder} is missing", fetch_remedy(folder, "setup"))
    return folder


def fetch_lake_jars() -> None:
    """Fetch the jars of every lake if that is done on demand.

    Raise InputError if some are missing.
    """
    for profile in _LAKE_PROFILES:
        jar_folder(profile)


def java(lake: Home) -> str:
    """Return the path of the lake's `java`, which stays the same until the lake is stopped.

    Otherwise a shell with another PATH or JAVA_HOME would restart every Java component.
    """
    found = present_java(lake)
    lake.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(lake.java_file, found)
    return found


def present_java(lake: Home) -> str:
    """Return the path of the running lake's `java`, or else of the shell's."""
    kept = lake.java_file
    if is_supervisor_alive(lake) and kept.is_file() and os.access(kept.read_text(), os.X_OK):
        return kept.read_text()
    return os.path.realpath(_find_java())


@cache
def _check_java(program: str) -> None:
    """Raise InputError if the components do not run on this `java`, before one fails at length."""
    version = java_version(program)
    problem = "its version is not known" if version is None else java_problem(version)
    if problem is not None:
        raise InputError(
            f"{program} cannot run the lake: {problem}",
            "set JAVA_HOME to a JDK 17: apt-get install openjdk-17-jdk-headless",
        )


def _find_java() -> str:
    """Return the path of `java`: from JAVA_HOME if that is set, otherwise from the PATH.

    Raise InputError if there is none, or if the components do not run on it.
    """
    found = java_program()
    if found is None:
        home = os.environ.get("JAVA_HOME")
        where = f"JAVA_HOME ({home})" if home else "the PATH"
        raise InputError(
            f"`java` was not found in {where}", "apt-get install openjdk-17-jdk-headless"
        )
    _check_java(found)
    return found


def environment(**more: str) -> dict[str, str]:
    """Return the environment in UTC that a component has in whichever shell it is started."""
    return {"TZ": "UTC", "LANG": "C.UTF-8", **more}


def aws_variables(keys: Login) -> dict[str, str]:
    """Return the variables with which AWS's clients use these keys and no others of the machine."""
    return {
        "AWS_ACCESS_KEY_ID": keys.user,
        "AWS_SECRET_ACCESS_KEY": keys.password,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def shell() -> dict[str, str]:
    """Return the shell's variables that components need, without others such as proxies."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def jvm(home: Home, profile: str, heap: str, main_class: str) -> tuple[str, ...]:
    """Return the command line of a Java component, up to and including its main class."""
    program = java(home)
    return (
        program,
        class_archive.option(home, profile, program),
        f"-Xms{heap.partition(':')[0]}",
        f"-Xmx{heap.partition(':')[2]}",
        # Further optimization costs more in the first minutes than it saves (measured).
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",  # two shared cores: fewer threads, less memory
        "-XX:+ExitOnOutOfMemoryError",  # a dead process can be restarted, a hanging one cannot
        "-Duser.timezone=UTC",
        jaas.option(home),
        f"-Dlog4j.configuration=file:{LOG4J}",
        *("-cp", f"{jar_folder(profile)}/*", main_class),
    )
