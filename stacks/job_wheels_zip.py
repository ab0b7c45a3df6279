"""The packages of the jobs that ask the source, as the zip of wheels that Glue installs from."""

from __future__ import annotations

from pathlib import Path

from cdclake.packing import PACKAGE, PROJECT, pack
from cdclake.stacks.locked_wheels import LockedWheels

# Glue 5.1 runs Python 3.11 on Amazon Linux 2023, whose C library is 2.34.
WHEELS = LockedWheels(
    lock=PACKAGE / "jobs" / "requirements.txt",
    folder=PROJECT / "build" / "wheels" / "glue_jobs",
    python="3.11",
    platforms=("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
)
SUFFIX = ".gluewheels.zip"  # by which Glue knows such a zip
_FOLDER = "wheels"


def build_job_wheels(wheels: LockedWheels = WHEELS) -> Path:
    """The zip; InputError, which says what to run, if the wheels are not there."""
    files = wheels.files()
    pins = sorted("==".join(file.name.split("-")[:2]) for file in files)
    packed = {file.name: file.read_bytes() for file in files}
    packed["requirements.txt"] = "".join(f"{pin}\n" for pin in pins).encode()
    return pack("cdclake-wheels", {f"{_FOLDER}/{n}": b for n, b in packed.items()}).path
