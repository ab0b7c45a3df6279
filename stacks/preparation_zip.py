"""The function that prepares the source as one zip, with its packages, the plan and authorities."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator

from cdclake.packing import PACKAGE, PROJECT, Packed
from cdclake.plan import Plan
from cdclake.stacks.constructs.function_zip import build_function
from cdclake.stacks.locked_wheels import LockedWheels

MODULE = "prepare_source"
# Lambda's Python 3.14 runs on Amazon Linux 2023, whose C library is 2.34.
WHEELS = LockedWheels(
    lock=PACKAGE / "functions" / MODULE / "requirements.txt",
    folder=PROJECT / "build" / "wheels" / MODULE,
    python="3.14",
    platforms=("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
)
AUTHORITIES = PROJECT / "java" / "resources" / "cdclake" / "connect" / "rds-ca.pem"


def build_preparation(plan: Plan, *, wheels: LockedWheels = WHEELS) -> Packed:
    """The function for this plan; InputError, which says what to run, without its packages."""
    return build_function(MODULE, dict(_files(plan, wheels)))


def _files(plan: Plan, wheels: LockedWheels) -> Iterator[tuple[str, bytes]]:
    for wheel in wheels.files():
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, archive.read(entry)
    yield AUTHORITIES.name, AUTHORITIES.read_bytes()
    yield "plan.json", plan.to_json().encode()
