"""Zip of shared code that jobs get as `--extra-py-files`, on Glue and locally."""

from __future__ import annotations

from pathlib import Path

from cdclake.places import PACKAGE
from cdclake.zip_files import modules, pack


def build_job_package() -> Path:
    """Build the zip below build/ and return its path; equal code gives equal bytes and hash."""
    return pack("cdclake-jobs", modules("jobs")).path


def script_of(job: str) -> Path:
    """Return the job's entry script, which Glue gets in addition to the zip."""
    return (PACKAGE / "jobs" / f"{job}.py").resolve()
