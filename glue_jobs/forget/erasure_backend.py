"""Interface of an erasure to one lake: its objects, its control objects and its writers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.erasure.sought_values import SoughtValues
from cdclake.jobs.erasure.stored_objects import Leftover
from cdclake.jobs.forget.lake_objects import LakeObjects
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.jobs.reader.duck import Reader
from cdclake.plan import Plan, Table


class ErasureBackend(Protocol):
    """One lake: `LocalErasureBackend`, or `DeployedErasureBackend` of a job on AWS."""

    @property
    def plan(self) -> Plan:
        """The plan that the writers have."""

    @property
    def control(self) -> ObjectStore:
        """The control objects."""

    @property
    def objects(self) -> LakeObjects:
        """The objects of the tables."""

    @property
    def state_bucket(self) -> str:
        """Bucket of the control objects, and of Firehose's failed records."""

    @property
    def reader(self) -> Reader:
        """DuckDB reader of the tables."""

    @property
    def operations(self) -> TableOperations:
        """Requests to the stream."""

    @property
    def salt(self) -> str:
        """Salt of the pipeline's masks."""

    def position(self) -> str:
        """Return a position between all transactions until now and all later ones."""

    def delivery_seconds(self, table: Table) -> float:
        """Return the time within which Firehose appends events that it has decoded.

        Rows whose append fails at first take longer; later runs of the apply job erase those.
        """

    def run_job(self, job: str, tables: Sequence[str]) -> dict[str, Any]:
        """Run a job over these tables or copies to its end, and return its report."""

    def restart_stream(self) -> None:
        """Have the stream drop its memory, its temporary files and its key indexes."""

    def redact(self, sought: SoughtValues) -> list[str]:
        """Overwrite values in logs; return the names of the changed files."""

    def search(self, sought: SoughtValues, own: tuple[str, ...]) -> set[Leftover]:
        """Search everything that the lake stores; `own` are prefixes of the values' table."""
