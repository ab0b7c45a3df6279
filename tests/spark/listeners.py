"""What happens while Iceberg works: at a scan, so after the look and before the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession


class Meanwhile:
    """Runs something when a table is scanned. Iceberg calls listeners on the scanning thread."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._table = ""
        self._work: Callable[[], object] | None = None
        self._left = 0
        self.errors: list[Exception] = []

    @contextmanager
    def at_scan_of(self, table: str, work: Callable[[], object], times: int = 1) -> Iterator[None]:
        """At the next scans of the table; not at those that `work` itself makes."""
        self._table, self._work, self._left = table, work, times
        jvm: Any = self._spark.sparkContext._jvm
        scans = jvm.java.lang.Class.forName("org.apache.iceberg.events.ScanEvent")
        jvm.org.apache.iceberg.events.Listeners.register(self, scans)
        try:
            yield
        finally:
            self._work = None
            _forget_listeners(jvm)
        assert self.errors == []

    def notify(self, event: Any) -> None:
        """Iceberg's Listener."""
        if self._work is None or self._left == 0 or not event.tableName().endswith(self._table):
            return
        work, self._work, self._left = self._work, None, self._left - 1
        try:
            work()
        except Exception as error:
            self.errors.append(error)
        finally:
            self._work = work

    class Java:
        implements = ("org.apache.iceberg.events.Listener",)


def _forget_listeners(jvm: Any) -> None:
    """Iceberg has no way to: what stays would be called by every scan of all later tests.

    Those of a broadcast run on a thread of their own. The suite's last file once stood still there,
    300 s at a time; that calls into Python were the reason is likely, but was not seen.
    """
    kept = jvm.java.lang.Class.forName("org.apache.iceberg.events.Listeners").getDeclaredField(
        "LISTENERS"
    )
    kept.setAccessible(True)
    kept.get(None).clear()
