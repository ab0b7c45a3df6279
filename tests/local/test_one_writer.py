"""One writer on the real lake: two streams at once, an owner that wakes up, a lost checkpoint."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.local.running import SHOP, Business, RunningLake, shop_lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

# What a stream says that another one has ousted: at the log's fence, or at the checkpoint.
OUSTED = (
    "another stream has written",
    "Multiple streaming jobs detected",
    "Multiple streaming queries are concurrently using",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with shop_lake_in(tmp_path_factory.mktemp("lake")) as running:
        yield running


def stream_of(lake: RunningLake) -> psutil.Process:
    return psutil.Process(lake.pid("stream"))


@contextmanager
def second_stream(first: psutil.Process, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Another process with the first one's arguments, environment and checkpoint."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            first.cmdline(),
            env=first.environ(),
            cwd=first.cwd(),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def family(pid: int) -> list[psutil.Process]:
    """The driver and its Java process, if they live."""
    try:
        driver = psutil.Process(pid)
        return [driver, *driver.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def lives(process: psutil.Process) -> bool:
    """Whether it runs, and is not merely waiting for its parent to notice its end."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def ingested(lake: RunningLake) -> int:
    [[rows]] = lake.sql("select count(*) from customers_changes")
    return int(rows)


def assert_nothing_doubled(lake: RunningLake) -> None:
    lake.run("up", str(SHOP))
    lake.assert_equal()
    lake.assert_each_identity_once("customers", "customer_id")
    lake.assert_each_identity_once("orders", "order_id")
    lake.assert_each_identity_once("order_items", "order_id", "line_no")


def ousted_text(*logs: Path) -> str:
    texts = [log.read_text(errors="replace") for log in logs]
    return " ".join(word for word in OUSTED if any(word in text for text in texts))


@pytest.mark.parametrize("asleep_for", [0.0, 0.7], ids=["at once", "later"])
def test_an_owner_that_wakes_up_after_a_takeover_fails_loudly(
    lake: RunningLake, tmp_path: Path, asleep_for: float
) -> None:
    first = stream_of(lake)
    own_log = Path(
        next(p["log"] for p in lake.run("status")["components"] if p["name"] == "stream")
    )
    with Business(lake, seed=int(21 + 10 * asleep_for)):
        time.sleep(3 + asleep_for)
        sleeping = family(first.pid)
        try:
            for process in sleeping:
                with suppress(psutil.NoSuchProcess):  # a child that has just ended by itself
                    process.suspend()
            before = ingested(lake)
            with second_stream(first, tmp_path / "second.log") as second:
                lake.eventually(lambda: ingested(lake) > before + 20, seconds=120)
                for process in reversed(sleeping):
                    with suppress(psutil.NoSuchProcess):
                        process.resume()
                lake.eventually(lambda: not lives(first), seconds=60)
                assert second.poll() is None
                went_on = ingested(lake)
                lake.eventually(lambda: ingested(lake) > went_on, seconds=60)
        finally:
            for process in family(first.pid):
                with suppress(psutil.NoSuchProcess):
                    process.resume()
    assert ousted_text(own_log), own_log.read_text(errors="replace")[-3000:]
    assert_nothing_doubled(lake)


def test_of_two_streams_at_once_one_ends_and_nothing_is_doubled(
    lake: RunningLake, tmp_path: Path
) -> None:
    first = stream_of(lake)
    own_log = Path(
        next(p["log"] for p in lake.run("status")["components"] if p["name"] == "stream")
    )
    log = tmp_path / "second.log"
    with Business(lake, seed=31), second_stream(first, log) as second:
        lake.eventually(lambda: not (lives(first) and second.poll() is None), seconds=120)
        time.sleep(5)
    assert ousted_text(own_log, log), log.read_text(errors="replace")[-3000:]
    assert_nothing_doubled(lake)


def test_a_lost_checkpoint_is_made_again_from_the_stamps(lake: RunningLake) -> None:
    before = ingested(lake)
    with Business(lake, seed=41):
        time.sleep(2)
        lake.run("pause")
        [checkpoint] = (lake.home / "data" / "checkpoints").iterdir()
        shutil.rmtree(checkpoint)
        time.sleep(2)
        lake.run("resume")
    assert_nothing_doubled(lake)
    assert ingested(lake) > before
    assert {"commits", "offsets"} <= {path.name for path in checkpoint.iterdir()}
