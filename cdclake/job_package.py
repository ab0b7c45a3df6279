"""The one zip of shared code that jobs get as `--extra-py-files`, on Glue and locally."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[1]
_PACKAGES = ("cdclake", "glue_jobs")
_LEFT_OUT = "cdclake/config/"  # needs pydantic; jobs read the resolved plan
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_job_package() -> Path:
    """The zip's path, below build/; equal code gives equal bytes, named by their hash."""
    content = _zipped()
    target = _PROJECT / "build" / f"cdclake-jobs-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        fresh = target.with_suffix(".tmp")
        fresh.write_bytes(content)
        fresh.replace(target)
    return target


def script_of(job: str) -> Path:
    """The job's entry script, which Glue gets beside the zip."""
    return _PROJECT / "glue_jobs" / f"{job}.py"


def _zipped() -> bytes:
    """Uncompressed: another machine's zlib would give other bytes, and restart the stream."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(_modules()):
            entry = zipfile.ZipInfo(path.relative_to(_PROJECT).as_posix(), _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _modules() -> list[Path]:
    found = [path for package in _PACKAGES for path in (_PROJECT / package).rglob("*.py")]
    return [p for p in found if not p.relative_to(_PROJECT).as_posix().startswith(_LEFT_OUT)]
