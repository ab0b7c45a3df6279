"""`make plugins`: fetch the packages of deployed functions, and pack the connector's plugin.

The jars are there by then. Afterwards nothing that is deployed needs the network.
"""

from __future__ import annotations

import subprocess
import sys
from shutil import rmtree

from cdclake.errors import CdcError, InputError
from stacks.plugin_zip import build_plugin
from stacks.preparation_zip import LOCK, STAMP, WHEELS, lock_digest

# Lambda's Python 3.14 runs on Amazon Linux 2023, whose C library is 2.34.
_FOR_LAMBDA = (
    *("--python-version", "3.14", "--implementation", "cp"),
    *("--platform", "manylinux_2_28_aarch64", "--platform", "manylinux_2_17_aarch64"),
    *("--platform", "manylinux2014_aarch64"),
)


def main() -> int:
    """Print what was made; 2 with what to do if something is missing."""
    try:
        fetch_packages()
        plugin = build_plugin()
    except CdcError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    size = plugin.path.stat().st_size / 1e6
    sys.stdout.write(f"plugin: {plugin.path} ({size:.1f} MB)\n")
    return 0


def fetch_packages() -> None:
    """Fetch the locked wheels, by hash; free when they are there."""
    stamp = WHEELS / STAMP
    if stamp.is_file() and stamp.read_text() == lock_digest():
        return
    rmtree(WHEELS, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", *_FOR_LAMBDA]
    command += ["--requirement", str(LOCK), "--dest", str(WHEELS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(
            f"pip could not fetch the packages of {LOCK}: {done.stderr.strip()}",
            "check the network and pip's configuration, and run `make plugins` again",
        )
    stamp.write_text(lock_digest())


if __name__ == "__main__":
    sys.exit(main())
