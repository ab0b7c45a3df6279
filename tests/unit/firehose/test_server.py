"""What the local Firehose does all the time goes on when it failed."""

import logging
import threading

import pytest

from cdclake.local.firehose import firehose_server


@pytest.mark.timeout(20)
def test_what_fails_is_told_and_done_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(firehose_server, "_RETRY_S", 0.0)
    stop = threading.Event()
    done: list[int] = []

    def work() -> None:
        done.append(len(done))
        if len(done) < 3:
            raise OSError(f"no {len(done)}")
        stop.set()

    with caplog.at_level(logging.ERROR):
        firehose_server.keep_doing("the schedule", work, stop)
    assert done == [0, 1, 2]
    told = [(record.getMessage(), str(record.exc_info[1])) for record in caplog.records]  # type: ignore[index]
    assert told == [("the schedule failed, retrying", f"no {n}") for n in (1, 2)]
