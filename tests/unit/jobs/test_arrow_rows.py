"""Session setting of the rows in an Arrow batch, which the threads of a stream share."""

import threading
from typing import Any
from unittest.mock import Mock

from cdclake.jobs.stream.changelog_job import _arrow_rows


def test_arrow_rows_restores_the_setting_after_two_threads() -> None:
    setting = {"rows": "2000"}
    spark: Any = Mock()
    spark.conf.get = lambda _: setting["rows"]
    spark.conf.set = lambda _, value: setting.update(rows=value)
    entered, may_leave = threading.Event(), threading.Event()

    def second() -> None:
        with _arrow_rows(spark, 9):
            entered.set()
            may_leave.wait(10)

    thread = threading.Thread(target=second)
    with _arrow_rows(spark, 4):
        thread.start()
        entered.wait(0.5)
        assert setting["rows"] == "4"  # of the job that runs now
    assert entered.wait(10)
    assert setting["rows"] == "9"
    may_leave.set()
    thread.join()
    assert setting["rows"] == "2000"
