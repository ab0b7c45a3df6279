"""Faults of S3, Glue and the local disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake.local.components.aws import FAULTS_KEY
from tests.faults.fault import Fault, FaultyLake
from tests.model_lake.shapes import PIPELINE


def _with(kinds: str, share: str = "") -> Callable[[FaultyLake], None]:
    """Return an injection of these kinds of faults for most of a wave."""

    def inject(lake: FaultyLake) -> None:
        faults = f"{lake.random.randrange(1000)}:{kinds}{share}"
        lake.lake.run("up", str(lake.file), expect=None, **{FAULTS_KEY: faults})
        lake.pause_s(30, 40)
        lake.heal()

    return inject


def _outage(lake: FaultyLake) -> None:
    lake.lake.run("up", str(lake.file), expect=None, **{FAULTS_KEY: "0:outage"})
    lake.pause_s(70, 90)
    lake.heal()


def _checkpoint_disk_is_full(lake: FaultyLake) -> None:
    checkpoint = lake.lake.home / "data" / "checkpoints" / PIPELINE
    lake.lake.run("pause")
    with _small_disk(checkpoint, size="1m") as free:
        lake.lake.run("resume", expect=None)
        lake.pause_s(10, 15)
        free()
        lake.heal()
        lake.lake.run("pause")
    lake.lake.run("resume")


@contextmanager
def _small_disk(folder: Path, size: str) -> Iterator[Callable[[], None]]:
    """Put the folder's contents on a full disk for the block; the yielded function frees space."""
    kept = folder.with_name(f"{folder.name}-kept")
    folder.rename(kept)
    folder.mkdir(mode=0o700)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        _run("cp", "-a", f"{kept}/.", str(folder))
        filler = folder.parent / folder.name / "filler"
        with filler.open("wb") as file:
            _fill(file.fileno())
        yield filler.unlink
        _run("rm", "-rf", str(kept))
        _run("cp", "-a", f"{folder}/.", str(kept))
    finally:
        _run("umount", str(folder))
        folder.rmdir()
        kept.rename(folder)


def _fill(file: int) -> None:
    while True:
        try:
            os.write(file, bytes(4096))
        except OSError:
            return


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


STORAGE_FAULTS = (
    Fault(
        id="F22",
        group="storage",
        title="S3 and Glue slow, throttled and failing",
        inject=_with("latency,throttle,error", "@0.08"),
    ),
    Fault(
        id="F25",
        group="storage",
        title="responses lost after the request took effect",
        inject=_with("drop_after", "@0.15"),
    ),
    Fault(
        id="F26",
        group="storage",
        title="requests lost before they took effect",
        inject=_with("drop_before", "@0.15"),
    ),
    Fault(
        id="F27",
        group="storage",
        title="S3 and Glue fail every request for 20 s a minute",
        inject=_outage,
    ),
    Fault(
        id="F30",
        group="storage",
        title="the checkpoint's disk is full",
        inject=_checkpoint_disk_is_full,
    ),
)
