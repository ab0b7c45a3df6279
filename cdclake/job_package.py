"""The one zip of shared code that jobs get as `--extra-py-files`, on Glue and locally."""

from __future__ import annotations

from pathlib import Path

from cdclake.packing import PROJECT, pack

_PACKAGES = ("cdclake", "glue_jobs")
_LEFT_OUT = "cdclake/config/"  # needs pydantic; jobs read the resolved plan


def build_job_package() -> Path:
    """The zip's path, below build/; equal code gives equal bytes, named by their hash."""
    return pack("cdclake-jobs", {name: path.read_bytes() for name, path in _modules().items()}).path


def script_of(job: str) -> Path:
    """The job's entry script, which Glue gets beside the zip."""
    return PROJECT / "glue_jobs" / f"{job}.py"


def _modules() -> dict[str, Path]:
    found = [path for package in _PACKAGES for path in (PROJECT / package).rglob("*.py")]
    named = {path.relative_to(PROJECT).as_posix(): path for path in found}
    return {name: path for name, path in named.items() if not name.startswith(_LEFT_OUT)}
