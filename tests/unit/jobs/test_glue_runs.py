"""Start of a run that other runs leave no room for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdclake.errors import ComponentFailed
from cdclake.jobs.runtime import glue_runs
from cdclake.jobs.runtime.glue_runs import run_to_end

OF_JOB, OF_ACCOUNT = "ConcurrentRunsExceededException", "ResourceNumberLimitExceededException"


def refusing(*codes: str) -> Any:
    """A client that refuses as many starts."""
    refusals = iter(codes)

    def start(**_: Any) -> dict[str, str]:
        for code in refusals:
            raise ClientError({"Error": {"Code": code, "Message": "full"}}, "StartJobRun")
        return {"JobRunId": "jr_1"}

    ended = {"JobRun": {"JobRunState": "SUCCEEDED"}}
    return SimpleNamespace(start_job_run=start, get_job_run=lambda **_: ended)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glue_runs, "_POLL_S", 0.0)


def test_run_waits_for_runs_of_the_job_and_of_the_account() -> None:
    assert run_to_end(refusing(OF_JOB, OF_ACCOUNT), "job", {}) == "SUCCEEDED"


def test_run_that_never_starts_is_reported_with_glues_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(glue_runs, "_START_TIMEOUT_S", -60.0)
    with pytest.raises(ComponentFailed, match=f"no run of job could start .*{OF_ACCOUNT}"):
        run_to_end(refusing(OF_ACCOUNT), "job", {})


def test_run_that_glue_denies_is_not_repeated() -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        run_to_end(refusing("AccessDeniedException"), "job", {})
