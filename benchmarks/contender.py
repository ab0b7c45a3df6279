"""What a way of applying changes has to offer to be measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession


class Contender(Protocol):
    """One way to keep the table up to date, in a Spark session of its own."""

    jars: ClassVar[str]  # folder of the jars that it needs, below the project
    given: ClassVar[str]  # what it was given to be at its best, for the page
    cannot: ClassVar[str]  # what it does not do that ours does, for the page

    @staticmethod
    def settings(warehouse: str) -> Mapping[str, str]:
        """Its Spark settings, with its tables below the folder or bucket `warehouse`."""
        ...

    def __init__(self, spark: SparkSession, warehouse: str) -> None: ...

    def load(self, rows: DataFrame) -> None:
        """Make the table, with the rows that it begins with, which are in the log's columns."""
        ...

    def apply(self, changes: DataFrame) -> None:
        """Bring one batch into the table. `changes` are held in memory, in the log's columns."""
        ...

    def live_rows(self) -> DataFrame:
        """What a reader sees now: exactly the declared columns."""
        ...
