"""The job `forget_rows`: erase the rows that an order names, and report what is left.

No argument, log line or report has a key: the order is an object that the job deletes as soon as it
has read it, with all its versions, and an error's text that has a key is withheld.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse

import boto3
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.control_objects import forget_name
from cdclake.errors import CdcError, ComponentFailed, InputError
from cdclake.forget.refused_plans import check_erasable
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.requests import pause_of
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.erasure.removed_objects import delete_objects
from cdclake.jobs.erasure.stored_objects import object_versions
from cdclake.jobs.forget.deployed_erasure_backend import DeployedErasureBackend
from cdclake.jobs.forget.erase import Erasure
from cdclake.jobs.forget.erased_keys import erasable_keys
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.table_jobs.table_reports import error_report
from cdclake.metrics import FAILED_TABLES
from cdclake.plan import Plan

log = logging.getLogger("cdclake.forget")

Keys = Sequence[tuple[str, ...]]


def run(arguments: Mapping[str, str]) -> int:
    """Erase the rows, write the report, and return the exit code of the process."""
    control = ObjectStore(arguments["control"])
    try:
        plan = PlanWatcher(arguments["plan"], control).read()
        keys = take_keys(control, arguments)
        report = erase(plan, control, keys, arguments)
    except Exception as error:  # an uncaught one would be logged with its text
        report = error_report(redacted(error))
        frames = "".join(traceback.format_tb(error.__traceback__))
        log.error("%s\n%s", report["error"]["message"], frames)
    control.write(naming.report_name(arguments.get("run", naming.FORGET_JOB)), report)
    if "error" not in report:
        log.info("erased %s; %d places left", report["erased"], len(report["stored"]))
    metrics = Metrics(arguments.get("metrics"), naming.FORGET_JOB)
    metrics.publish(lambda: {FAILED_TABLES: int(not report["ok"])})
    return 0 if report["ok"] else 1


def erase(
    plan: Plan, control: ObjectStore, keys: Keys, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """Erase the rows; raise CdcError, before anything is touched, if the plan does not allow it."""
    table = plan.table(arguments["tables"])
    check_erasable(plan, table)
    if table.delivery == "stream" and (pause := pause_of(control)) is not None:
        raise pause
    with ExitStack() as resources:
        lake = DeployedErasureBackend(plan, arguments, resources)
        found = erasable_keys(lake.dsn, table, keys, lambda: lake.reader, is_logged=True)
        erasure = Erasure(lake, table, found, timedelta(seconds=float(arguments["grace"])))
        try:
            return erasure.run()
        except Exception as error:
            spelled = ([str(value) for value in key.values.values()] for key in found)
            raise redacted(error, [*keys, *spelled]).with_traceback(error.__traceback__) from None


def take_keys(control: ObjectStore, arguments: Mapping[str, str]) -> Keys:
    """Return the keys of the run's order, which is deleted with all its versions."""
    name = forget_name(arguments["order"])
    stored = control.read(name)
    if stored is None:
        raise InputError(
            "the object with the keys to erase does not exist: each run deletes it after reading"
            " it",
            "start the job by `cdclake forget TABLE KEY --target aws`",
        )
    erase_object(f"{arguments['control']}/{name}")
    return [tuple(line) for line in stored.content["keys"]]


def erase_object(uri: str) -> None:
    """Delete every version of one object."""
    parsed, client = urlparse(uri), boto3.client("s3")
    key = parsed.path.lstrip("/")
    versions = [v for v in object_versions(client, parsed.netloc, key) if v.key == key]
    delete_objects(client, parsed.netloc, versions)


def redacted(error: Exception, keys: Iterable[Sequence[str]] = ()) -> CdcError:
    """Return the error as it may be logged and reported: without a value of a row.

    Only cdclake's own errors keep their text, unless it has a value of a key.
    """
    text = str(error)
    words = {word for line in keys for word in line if word}
    if isinstance(error, ClientError):
        told = f"{error.operation_name} was refused: {error.response['Error']['Code']}"
    elif not isinstance(error, CdcError):
        told = f"{type(error).__name__}, whose text may have values of rows"
    elif any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in words):
        told = f"{type(error).__name__}, whose text has a key"
    else:
        return error
    return ComponentFailed(
        f"the erasure failed: {told}",
        f"see where in the log of {naming.FORGET_JOB}, repair it, and run the command again",
        component=naming.FORGET_JOB,
    )
