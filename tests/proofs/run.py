"""Run one part of the proofs, or go on with it, and record each unit's result.

    python -m tests.proofs.run PART [--minutes 30] [--again] [--only NAME,NAME]

Units that have succeeded on the present engine, with the tests that they have now, are not run
again. After the given minutes no further unit is started; the same command goes on. Without PART it
lists the parts.
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
    for number, unit in enumerate(open_units):
        if time.monotonic() > deadline:
            say(f"{len(open_units) - number} units are left: run the same command again")
            return False
        results[unit.name] = run_unit(unit, engine)
        write_results(part.name, results)
    failed = [u.name for u in chosen if not results[u.name].succeeded]
    say(f"{part.name}: {len(chosen)} units, failed: {', '.join(failed) or 'none'}")
    return not failed


def run_unit(unit: Unit, engine: str) -> Result:
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
    seconds = time.monotonic() - started
    verdict = "passed" if passed and not failed else "FAILED"
    say(f"{verdict} {seconds:5.0f} s  {unit.name}: {passed} passed, {failed} failed")
    if failed or not passed:
        say(done.stdout[-6000:] + done.stderr[-2000:])
    return Result(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=_commit(),
        engine=engine,
        seconds=round(seconds, 1),
        tests=unit.tests,
        passed=passed,
        failed=failed,
        skipped=skipped,
    )


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


def _commit() -> str:
    short = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!docs/proofs")
    return f"{short}+" if changed else short


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
