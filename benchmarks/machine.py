"""What the figures were measured on: the machine, and the exact versions of everybody."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.session import CORES, MEMORY, PROJECT

_JARS = {
    "iceberg": "jars/spark/iceberg-spark-runtime-3.5_2.12-*.jar",
    "delta": "benchmarks/jars/delta/delta-spark_2.12-*.jar",
    "hudi": "benchmarks/jars/hudi/hudi-spark3.5-bundle_2.12-*.jar",
    "flink": "benchmarks/jars/flink/flink-clients-*.jar",
    "iceberg_of_flink": "benchmarks/jars/flink/iceberg-flink-runtime-2.0-*.jar",
}
_MEASURED = ("cdclake", "glue_jobs", "java", "benchmarks/*.py", "pom.xml", "*.lock")


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system; and how much of it a contender's Spark is given."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": cpu[1] if cpu else platform.processor(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / (1 << 30), 1),
        "system": platform.platform(),
        "spark_cores": CORES,
        "spark_memory": MEMORY,
        "load_before": round(psutil.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Python, Java, Spark, the formats that are here, and the commit that was measured."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "([^"]+)"', java)
    return {
        "cdclake": _commit(),
        "python": platform.python_version(),
        "java": found[1] if found else "unknown",
        "pyspark": version("pyspark"),
        "duckdb": version("duckdb"),
        **_jar_versions(),
    }


def code_digest() -> str:
    """Return a digest of all that a measure runs, which commits of texts and tests leave alone."""
    digest = hashlib.sha256()
    for name in _git("ls-files", *_MEASURED).splitlines():
        if (PROJECT / name).is_file():
            digest.update(f"{name}\0".encode() + (PROJECT / name).read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str:
    """What was measured; `-dirty` if files differ from it, but for results just written."""
    commit = _git("describe", "--always")
    others = _git("status", "--porcelain", "--untracked-files=no", ":!benchmarks/results")
    return f"{commit}-dirty" if others else commit


def _git(*words: str) -> str:
    asked = ["git", *words]
    return subprocess.run(
        asked, cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _jar_versions() -> dict[str, str]:
    """Without those that are not fetched: a measure that has no such peer needs none."""
    found = {}
    for name, pattern in _JARS.items():
        before = Path(pattern).name.partition("*")[0]
        for jar in PROJECT.glob(pattern):
            found[name] = jar.name.removeprefix(before).removesuffix(".jar")
    return found
