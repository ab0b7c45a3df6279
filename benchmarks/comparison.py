"""Contenders one after the other on the same data, each end state compared before it counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.dataset import DataSet
from benchmarks.expected import differences
from benchmarks.results import Run
from benchmarks.session import PROJECT
from benchmarks.storage import Storage
from cdclake.interrupts import uninterrupted


class ContestError(Exception):
    """A contender's process has failed; the message names its log."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of its own for one process, and the storage that it is given."""

    folder: Path
    storage: Storage

    def ask(self, module: str, question: Mapping[str, Any]) -> Any:
        """What the module's `take` answers in a process of its own; ContestError if it fails."""
        asked, answered = self.folder / "question.json", self.folder / "answer.json"
        given = {"warehouse": self.storage.warehouse, "scratch": str(self.folder / "scratch")}
        asked.write_text(json.dumps({**given, **question}))
        # Settings that a shell may hold for another Spark are not everybody's.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        words = self.folder.with_suffix(".log")
        with words.open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.child", module, str(asked), str(answered)],
                cwd=PROJECT,
                env={**kept, **self.storage.environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                ended = child.wait()
            except BaseException:  # interrupted: the child stops what it has started, and ends
                with uninterrupted():
                    child.terminate()
                    child.wait()
                raise
        if ended != 0:
            raise ContestError(f"{module} ended with {ended}; its words are in {words}")
        return json.loads(answered.read_text())


@dataclass(frozen=True, slots=True)
class Arena:
    """Where turns are taken: a folder to work in, and what the tables lie in."""

    work: Path
    storage: Callable[[Path], AbstractContextManager[Storage]]

    @contextmanager
    def place(self, name: str) -> Iterator[Place]:
        """An empty place; only the log of its process is left when the block ends."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            with self.storage(folder / "storage") as storage:
                yield Place(folder, storage)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, contender: str, data: DataSet) -> Run:
        """One contender's batches after the warm-up; what they took, or how its end is wrong."""
        with self.place(contender) as place:
            live_rows = place.folder / "live"
            question = {
                "contender": contender,
                "base": str(data.base),
                "batches": [str(file) for file in data.batch_files],
                "live_rows": str(live_rows),
            }
            figures = place.ask("benchmarks.run_contender", question)
            wrong = differences(data.base, data.batch_files, live_rows)
        subject = {"rows": data.rows, "changes": data.changes, "keys": data.keys}
        return Run(contender, subject, wrong, data.counted(figures))
