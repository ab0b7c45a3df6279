"""Descriptions of the Glue jobs of the processing stack, as the console shows them."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake import naming

PURPOSES: Mapping[str, str] = {
    naming.STREAM_JOB: "Appends events to the changelogs and applies them to the state tables",
    naming.APPLY_JOB: "Applies new changes from the changelogs to the state tables",
    naming.MAINTAIN_JOB: "Compacts tables, expires snapshots, purges tombstones, collapses history",
    naming.REBUILD_JOB: "Rebuilds state tables from their changelogs",
    naming.REFRESH_JOB: "Brings derived tables up to date with the tables that they are made of",
    naming.POLL_JOB: "Reads the rows of polled tables that have changed since the last poll",
    naming.PUBLISH_JOB: "Updates the copies of tables in Hudi's format",
    naming.CHECK_JOB: "Checks the quality rules of tables over their rows in the lake",
    naming.VERIFY_JOB: "Compares every row of the source with the lake",
    naming.FORGET_JOB: "Erases rows on request, deletes their objects and searches what is left",
    naming.LOAD_JOB: "Loads all rows of the source, and sets where the connector begins",
    naming.OPERATE_JOB: "Replays quarantined events, resumes stopped tables or resyncs tables",
}
