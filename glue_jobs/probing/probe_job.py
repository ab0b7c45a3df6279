"""The job `probe`: its checks, and their report."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from cdclake import naming
from cdclake.check import summary
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.probing.checks import probe
from cdclake.jobs.runtime.session import open_session

log = logging.getLogger("cdclake.probe")


def run(arguments: Mapping[str, str]) -> int:
    """Run the checks, log and report them; return 1 if one failed."""
    control = ObjectStore(arguments["control"])
    checks = probe(
        open_session(arguments["JOB_NAME"]),
        database=arguments["database"],
        control=control,
        checkpoint=arguments["checkpoint"],
    )
    for check in checks:
        log.info("%s %s: %s", check.state, check.name, check.detail)
    report = summary(checks)
    control.write(naming.report_name(arguments.get("run", naming.PROBE_JOB)), report)
    return 0 if report["ok"] else 1
