"""`make audit`: ask OSV (https://osv.dev) for known vulnerabilities of all locked dependencies.

Python packages are those of requirements.lock, Java packages those that Maven resolves. Findings in
audit-exceptions.json are accepted, each for one version, with a reason and the date of its review,
for 180 days.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from scripts.fetch_jars import CONNECTORS, PROFILES, run_maven

ROOT = Path(__file__).resolve().parents[1]
EXCEPTIONS = ROOT / "audit-exceptions.json"
OSV = "https://api.osv.dev/v1"
LONGEST_REVIEW_DAYS = 180
_QUERIES_PER_CALL = 500  # OSV takes at most 1,000
_RESOLVED = re.compile(r"^\s+([\w.-]+):([\w.-]+):jar:(?:[\w.-]+:)?([\w.-]+):\w+", re.M)
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==([^ ;\\]+)", re.M)


@dataclass(frozen=True, slots=True, order=True)
class Dependency:
    """One locked package: its ecosystem as OSV calls it, name and version."""

    ecosystem: str
    package: str
    version: str

    def query(self) -> dict[str, Any]:
        """Return OSV's query for the package."""
        package = {"ecosystem": self.ecosystem, "name": self.package}
        return {"package": package, "version": self.version}


@dataclass(frozen=True, slots=True)
class Finding:
    """One known vulnerability of a dependency."""

    dependency: Dependency
    id: str
    aliases: frozenset[str] = frozenset()


def main() -> int:
    """Print the findings without an exception; return 1 if there are any, 2 without an answer."""
    dependencies = sorted({*python_dependencies(), *java_dependencies()})
    try:
        findings = list(ask_osv(dependencies))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"audit: no answer of {OSV}: {error}; check the network\n")
        return 2
    exceptions = json.loads(EXCEPTIONS.read_text())
    remaining = list(without_exceptions(findings, exceptions, datetime.now(UTC).date()))
    for finding in remaining:
        found = finding.dependency
        sys.stdout.write(f"{finding.id}: {found.package} {found.version} ({found.ecosystem})\n")
    accepted = len(findings) - len(remaining)
    sys.stdout.write(
        f"{len(dependencies)} dependencies, {len(findings)} findings, {accepted} accepted\n"
    )
    return 1 if remaining else 0


def python_dependencies() -> Iterator[Dependency]:
    """Yield the packages of requirements.lock."""
    for name, version in _PIN.findall((ROOT / "requirements.lock").read_text()):
        yield Dependency("PyPI", name, version)


def java_dependencies(profiles: Iterable[str] = (*PROFILES, *CONNECTORS)) -> Iterator[Dependency]:
    """Yield the Maven packages of pom.xml's profiles, as Maven resolves them."""
    with tempfile.TemporaryDirectory() as folder:
        for profile in profiles:
            listed = Path(folder) / profile
            run_maven(
                profile,
                "dependency:list",
                "-DincludeScope=runtime",
                f"-DoutputFile={listed}",
            )
            for group, artifact, version in _RESOLVED.findall(listed.read_text()):
                yield Dependency("Maven", f"{group}:{artifact}", version)


def ask_osv(dependencies: Sequence[Dependency], url: str = OSV) -> Iterator[Finding]:
    """Yield the vulnerabilities that OSV knows; raise OSError if it does not answer.

    A batch's answer has only ids; the other names of a vulnerability come with its own record.
    """
    for start in range(0, len(dependencies), _QUERIES_PER_CALL):
        part = dependencies[start : start + _QUERIES_PER_CALL]
        queries = {"queries": [dependency.query() for dependency in part]}
        results = _call(f"{url}/querybatch", json.dumps(queries).encode())["results"]
        for dependency, result in zip(part, results, strict=True):
            for known in result.get("vulns", []):
                record = _call(f"{url}/vulns/{known['id']}")
                yield Finding(dependency, known["id"], frozenset(record.get("aliases", ())))


def _call(url: str, body: bytes | None = None) -> dict[str, Any]:
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        content: dict[str, Any] = json.load(answer)
        return content


def without_exceptions(
    findings: Iterable[Finding], exceptions: Sequence[Mapping[str, str]], today: date
) -> Iterator[Finding]:
    """Yield the findings that no exception accepts."""
    accepted = {
        (known["id"], known["package"], known["version"])
        for known in exceptions
        if (today - date.fromisoformat(known["reviewed"])).days <= LONGEST_REVIEW_DAYS
    }
    for finding in findings:
        found = finding.dependency
        names = {finding.id, *finding.aliases}
        if not any((name, found.package, found.version) in accepted for name in names):
            yield finding


if __name__ == "__main__":
    sys.exit(main())
