"""Run one part of the proofs, or go on with it, and record each unit's result.

    python -m tests.proofs.run PART [--minutes 30] [--again] [--only NAME,NAME]

Units that have succeeded on the present engine, with the tests that they have now, are not run
again. A skipped test fails its unit. After the given minutes no further unit is started; the same
command goes on. Nothing is recorded while files differ from the commit, except the records
themselves. Without PART it lists the parts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.page import write_page
from tests.proofs.parts import PROJECT, Part, Unit, all_parts
from tests.proofs.record import Result, engine_digest, read_results, write_results

_COUNTED = re.compile(r"^(\d+) \w+, (\d+) not (?:noticed|passed)", re.M)
_LONGEST_UNIT_S = 2700


def main() -> int:
    """Run the part; return 1 if a unit failed or is left to run."""
    parser = argparse.ArgumentParser(description="Run what CI leaves out, and record it.")
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--again", action="store_true", help="run succeeded units as well")
    parser.add_argument("--only", default="", help="parts of the names of the units to run")
    args = parser.parse_args()
    parts = {part.name: part for part in all_parts()}
    if args.part not in parts:
        engine = engine_digest()
        for part in parts.values():
            results = read_results(part.name)
            current = sum(_is_proved(unit, results, engine) for unit in part.units)
            counts = f"{current} of {len(part.units)} proved on this engine"
            say(f"{part.name:12} {counts:31} {part.proves}")
        return 0 if not args.part else 2
    only = tuple(filter(None, args.only.split(",")))
    done = run_part(parts[args.part], args.minutes, again=args.again, only=only)
    write_page()
    return 0 if done else 1


def run_part(part: Part, minutes: float, *, again: bool = False, only: Sequence[str] = ()) -> bool:
    """Run the units that have not succeeded on this engine; return True if all have.

    With `only`, those whose name contains one of these texts.
    """
    engine, deadline = engine_digest(), time.monotonic() + minutes * 60
    results = read_results(part.name)
    known = {unit.name for unit in part.units}
    results = {name: result for name, result in results.items() if name in known}
    chosen = [u for u in part.units if not only or any(text in u.name for text in only)]
    open_units = [u for u in chosen if again or not _is_proved(u, results, engine)]
    commit = git("rev-parse", "--short=10", "HEAD")
    if open_units and _report_changes(commit):
        return False
    for number, unit in enumerate(open_units):
        if time.monotonic() > deadline:
            say(f"{len(open_units) - number} units are left: run the same command again")
            return False
        result = run_unit(unit, engine, commit)
        if _report_changes(commit):
            return False
        results[unit.name] = result
        write_results(part.name, results)
    failed = [u.name for u in chosen if not results[u.name].succeeded]
    say(f"{part.name}: {len(chosen)} units, failed: {', '.join(failed) or 'none'}")
    return not failed


def run_unit(unit: Unit, engine: str, commit: str) -> Result:
    """Run a unit and count what passed."""
    started = time.monotonic()
    with TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        is_pytest = unit.command[0] == "pytest"
        more = (f"--junitxml={report}", "-p", "no:cacheprovider") if is_pytest else ()
        done = subprocess.run(
            [sys.executable, "-m", *unit.command, *more],
            cwd=PROJECT,
            env={**os.environ, **dict(unit.environment)},
            capture_output=True,
            text=True,
            timeout=_LONGEST_UNIT_S,
            check=False,
        )
        counts = _junit_counts(report) if report.exists() else _printed_counts(done.stdout)
    passed, failed, skipped = counts
    failed = failed or int(done.returncode != 0)
    result = Result(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=commit,
        engine=engine,
        seconds=round(time.monotonic() - started, 1),
        tests=unit.tests,
        passed=passed,
        failed=failed,
        skipped=skipped,
    )
    verdict = "passed" if result.succeeded else "FAILED"
    counted = f"{passed} passed, {failed} failed, {skipped} skipped"
    say(f"{verdict} {result.seconds:5.0f} s  {unit.name}: {counted}")
    if not result.succeeded:
        say(done.stdout[-6000:] + done.stderr[-2000:])
    return result


def _is_proved(unit: Unit, results: Mapping[str, Result], engine: str) -> bool:
    result = results.get(unit.name)
    return result is not None and result.proves(unit.tests) and result.engine == engine


def _junit_counts(report: Path) -> tuple[int, int, int]:
    [suite] = ET.parse(report).getroot().iter("testsuite")
    tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return tests - failed - skipped, failed, skipped


def _printed_counts(output: str) -> tuple[int, int, int]:
    """Read the last line of the mutations' and the faults' runs."""
    counted = _COUNTED.findall(output)
    if not counted:
        return 0, 1, 0
    total, failed = (int(number) for number in counted[-1])
    return total - failed, failed, 0


def _report_changes(commit: str) -> bool:
    """Print the files that differ from the commit; return True if there are any."""
    changed = changed_files(commit)
    if changed:
        say(
            f"not recorded: files differ from commit {commit}: {', '.join(changed[:5])}"
            f"{', ...' if len(changed) > 5 else ''}\n"
            "Commit or remove the changes, or run in another worktree (`git worktree add`)."
        )
    return bool(changed)


def changed_files(commit: str) -> list[str]:
    """Return the files that differ from the commit or are in none, without the records."""
    files = ("--", ".", ":!docs/proofs")
    changed = git("diff", "--name-only", commit, *files)
    added = git("ls-files", "--others", "--exclude-standard", *files)
    return [*changed.splitlines(), *added.splitlines()]


def git(*words: str) -> str:
    """Run git in the project; return what it prints."""
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
