"""`make plugins`: fetch the packages of jobs and functions, and pack the connector's plugin.

The jars have already been fetched. Afterwards building the deployment needs no network.
"""

from __future__ import annotations

import subprocess
import sys
from shutil import rmtree

from cdclake.errors import CdcError, InputError
from cdclake.stacks.bundles import JOB_WHEELS, PREPARATION_WHEELS, build_plugin
from cdclake.stacks.locked_wheels import STAMP, LockedWheels


def main() -> int:
    """Fetch the packages, build the plugin and print its path; on an error, print the remedy."""
    try:
        for wheels in (PREPARATION_WHEELS, JOB_WHEELS):
            fetch(wheels)
        plugin = build_plugin()
    except CdcError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    size = plugin.path.stat().st_size / 1e6
    sys.stdout.write(f"plugin: {plugin.path} ({size:.1f} MB)\n")
    return 0


def fetch(wheels: LockedWheels) -> None:
    """Fetch the locked wheels by hash, unless they are present."""
    if wheels.are_fetched():
        return
    rmtree(wheels.folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += ["--implementation", "cp", "--python-version", wheels.python]
    for platform in wheels.platforms:
        command += ["--platform", platform]
    command += ["--requirement", str(wheels.lock), "--dest", str(wheels.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(
            f"pip could not fetch the packages of {wheels.lock}: {done.stderr.strip()}",
            "check the network and pip's configuration, and run `make plugins` again",
        )
    (wheels.folder / STAMP).write_text(wheels.digest())


if __name__ == "__main__":
    sys.exit(main())
