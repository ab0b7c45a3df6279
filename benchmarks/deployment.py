"""`python -m benchmarks.deployment`: templates of 1 to 500 tables beside CloudFormation's limits.

Runs the CDK CLI as whoever deploys does, needs no account, takes a few minutes, and writes
benchmarks/results/deployment.json.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, versions
from benchmarks.run import say
from benchmarks.session import PROJECT

RESULTS = PROJECT / "benchmarks" / "results" / "deployment.json"
CDK = PROJECT / "node_modules" / ".bin" / "cdk"
TABLES = {1: 1, 10: 1, 100: 1, 500: 2}  # by number of tables the shards that they are in
COLUMNS = 20
# Source: CloudFormation's user guide, "Understand quotas": of one template.
LIMITS = {"resources": 500, "bytes": 1_000_000, "outputs": 200}


def main() -> int:
    """0 if every template is within every limit, else 1."""
    measured = {}
    for count, shards in TABLES.items():
        measured[f"{count} tables"] = found = _measure(count, shards)
        say(json.dumps({"tables": count, **found}))
    results = {"machine": machine(), "versions": versions(), "measures": measured}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(found["met"] for found in measured.values()) else 1


def _measure(count: int, shards: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "pipeline.yaml", Path(folder) / "out"
        file.write_text(_pipeline(count, shards))
        before, started = _cpu_seconds(), time.monotonic()
        command = [str(CDK), "synth", "--quiet", "--output", str(out), "-c", f"pipeline={file}"]
        done = subprocess.run(
            command, cwd=PROJECT, env={**os.environ, "CDK_DOCKER": "/bin/false"}, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"cdk synth of {count} tables ended with {done.returncode}")
        figures = {
            "seconds": round(time.monotonic() - started, 1),
            "cpu_seconds": round(_cpu_seconds() - before, 1),
        }
        stacks = {
            path.name.removesuffix(".template.json"): _sizes(path)
            for path in sorted(out.glob("*.template.json"))
        }
    largest = {what: max(size[what] for size in stacks.values()) for what in LIMITS}
    return {
        **figures,
        "stacks": len(stacks),
        "resources": sum(size["resources"] for size in stacks.values()),
        "largest": largest,
        "limits": LIMITS,
        "met": all(largest[what] <= most for what, most in LIMITS.items()),
        "templates": stacks,
    }


def _sizes(path: Path) -> dict[str, int]:
    """As it is uploaded."""
    template = json.loads(path.read_text())
    return {
        "resources": len(template["Resources"]),
        "outputs": len(template.get("Outputs", {})),
        "bytes": path.stat().st_size,
    }


def _pipeline(count: int, shards: int) -> str:
    columns = ", ".join(f"c{number}: text" for number in range(1, COLUMNS))
    tables = "".join(
        f"  public.t{number}:\n    key: [id]\n    columns: {{id: bigint, {columns}}}\n"
        f"    shard: {number % shards + 1}\n"
        for number in range(count)
    )
    return f"version: 1\nname: shop\nsource: {{database: shop}}\ntables:\n{tables}"


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
