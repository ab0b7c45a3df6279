"""Sizes of the deployment that a service would refuse together, though each is right alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.aws_model import CreatedSource
from cdclake.config.document import Document
from cdclake.config.outline import TableOutline
from cdclake.config.problems import Problem

_SOURCE = ("aws", "source", "create")


def check_storage(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """A slot that nobody reads must be given up long before the database's disk is full."""
    del tables
    declared = document.mapping(*_SOURCE)
    sizes = CreatedSource().model_dump() | declared
    storage, most, wal = (sizes[f"{n}_gb"] for n in ("storage", "max_storage", "slot_wal"))
    if type(storage) is type(wal) is int and wal * 2 > storage:
        yield document.problem(
            (*_SOURCE, "slot_wal_gb" if "slot_wal_gb" in declared else "storage_gb"),
            f"{wal} GB of WAL for the slot may fill a disk of {storage} GB",
            f"write `slot_wal_gb: {storage // 2}` or less, or a larger `storage_gb`",
        )
    if type(storage) is type(most) is int and most < storage:
        yield document.problem(
            (*_SOURCE, "max_storage_gb" if "max_storage_gb" in declared else "storage_gb"),
            f"the disk begins with {storage} GB and may grow to {most} GB",
            f"write `max_storage_gb: {storage}` or more",
        )
