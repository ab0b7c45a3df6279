"""Break a copy of the engine in every way of `broken` and see that the tests notice.

    python -m tests.mutations.run [--tests FILE] [words of a name]

Fails naming every survivor, and every mutation whose text is not in the source any more.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutations.broken import MUTATIONS
from tests.mutations.mutation import Mutation

PROJECT = Path(__file__).resolve().parents[2]
COPIED = (
    "benchmarks",
    "cdclake",
    "docs",
    "glue_jobs",
    "java",
    "lambda",
    "pipelines",
    "stacks",
    "tests",
)
COPIED_FILES = ("cdk.json", "jars.lock", "package.json", "pyproject.toml")
TESTS_FAILED = 1  # pytest's exit code; others say that it could not run them
LONGEST_S = 1800
AT_ONCE = 2  # half of a mutation's time is one thread that starts a JVM and plans


def main(arguments: Sequence[str]) -> int:
    """Run the mutations whose name has all of the words; the exit code."""
    parser = argparse.ArgumentParser(description="Break the engine and see that tests fail.")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--tests", default="", help="only mutations that this file notices")
    args = parser.parse_args(arguments)
    chosen = [
        m
        for m in MUTATIONS
        if all(word in m.name for word in args.words) and args.tests in (*m.tests, "")
    ]
    with (
        tempfile.TemporaryDirectory(prefix="cdclake-mutations-") as folder,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        whole = copied(Path(folder) / "whole")
        selections = sorted({mutation.tests for mutation in chosen})
        codes = pool.map(lambda tests: run_tests(whole, tests), selections)
        if failing := [t for t, code in zip(selections, codes, strict=True) if code != 0]:
            say("".join(f"These tests fail without any mutation: {t}\n" for t in failing))
            return 2

        def try_in_a_copy(number: int) -> str | None:
            return tried(copied(Path(folder) / str(number)), chosen[number])

        problems = [found for found in pool.map(try_in_a_copy, range(len(chosen))) if found]
    say(f"{len(chosen)} mutations, {len(problems)} not noticed")
    for problem in problems:
        say(f"  {problem}")
    return 1 if problems else 0


def say(text: str) -> None:
    """A line of the program's output, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def copied(folder: Path) -> Path:
    """A copy of what the tests need."""
    folder.mkdir()
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "jars")  # those of benchmarks
        shutil.copytree(PROJECT / name, folder / name, symlinks=True, ignore=ignored)
    for name in COPIED_FILES:
        shutil.copy(PROJECT / name, folder)
    (folder / "build").mkdir()
    for fetched in ("jars", "build/wheels"):
        (folder / fetched).symlink_to(PROJECT / fetched)
    return folder


def tried(copy: Path, mutation: Mutation) -> str | None:
    """None if a test fails in the mutated copy, which is removed, else what is wrong."""
    began = time.monotonic()
    for name, old, new in mutation.patches:
        file = copy / name
        text = file.read_text()
        if old not in text:
            return f"{mutation.name}: {name} does not say {old!r} any more"
        file.write_text(text.replace(old, new))
    code = run_tests(copy, (*mutation.tests, "-x"))
    shutil.rmtree(copy)
    verdict = {0: "SURVIVED", TESTS_FAILED: "noticed"}.get(code, f"pytest ended with {code}")
    say(f"{verdict:9} {time.monotonic() - began:4.0f} s  {mutation.name}")
    return None if code == TESTS_FAILED else f"{mutation.name}: {verdict}"


def run_tests(copy: Path, tests: tuple[str, ...]) -> int:
    """pytest's exit code in the copy; its output only if it could not run the tests."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, cwd=copy, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    if done.returncode not in (0, TESTS_FAILED):
        say(done.stdout[-3000:] + done.stderr[-2000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
