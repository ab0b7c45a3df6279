"""The function that prepares the source, as one zip: its code, ours that it shares, its packages.

The packages come from the function's requirements.txt by `make plugins`; nothing is fetched here.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from cdclake.errors import InputError
from cdclake.packing import PROJECT, Packed, pack
from cdclake.plan import Plan
from stacks.shared_code import shared_code

MODULE = "prepare_source"
LOCK = PROJECT / "lambda" / MODULE / "requirements.txt"
WHEELS = PROJECT / "build" / "wheels" / MODULE
STAMP = "locked.sha256"
_CODE = PROJECT / "lambda" / MODULE / f"{MODULE}.py"
_AUTHORITIES = PROJECT / "java" / "resources" / "cdclake" / "connect" / "rds-ca.pem"


def lock_digest() -> str:
    """Of the locked packages: what `make plugins` leaves beside those that it has fetched."""
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


def build_preparation(plan: Plan, *, wheels: Path = WHEELS) -> Packed:
    """The function for this plan; InputError, which says what to run, without its packages."""
    return pack(MODULE, dict(_files(plan, wheels)))


def _files(plan: Plan, wheels: Path) -> Iterator[tuple[str, bytes]]:
    stamp = wheels / STAMP
    if not stamp.is_file() or stamp.read_text() != lock_digest():
        raise InputError(f"the packages of {LOCK} are not in {wheels}", "run `make plugins`")
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, archive.read(entry)
    yield from shared_code().items()
    yield _CODE.name, _CODE.read_bytes()
    yield _AUTHORITIES.name, _AUTHORITIES.read_bytes()
    yield "plan.json", plan.to_json().encode()
