"""The one zip of shared code that jobs get as `--extra-py-files`, on Glue and locally."""

from __future__ import annotations

from pathlib import Path

from cdclake.packing import PACKAGE, modules, pack


def build_job_package() -> Path:
    """The zip's path, below build/; equal code gives equal bytes, named by their hash."""
    return pack("cdclake-jobs", modules("jobs")).path


def script_of(job: str) -> Path:
    """The job's entry script, which Glue gets beside the zip."""
    return (PACKAGE / "jobs" / f"{job}.py").resolve()
