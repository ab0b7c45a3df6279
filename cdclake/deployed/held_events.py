"""Numbers of events in the quarantine of a deployment, from the table itself.

The stream's own count is for `stop_table_after`: it restarts when a table flows again, and does not
contain what polls and the redrive of Firehose's records put into quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.errors import ComponentFailed
from cdclake.extras import missing_modules
from cdclake.jobs.reader.catalog import CatalogTable

_FIGURES = ("quarantined", "withheld")

Counts = Mapping[str, Mapping[str, int]]  # by figure and table


def held_events(
    lake: DeployedLake, quarantine: CatalogTable | None
) -> dict[str, dict[str, int | None]]:
    """Return `quarantined`, and of these `withheld`, of each table; None if they are unknown.

    Counting reads the table by the extra `read`, once for each of its commits. An empty table, or
    None for one that does not exist yet, has no events without it.
    """
    counts = _counts(lake, quarantine)
    return {
        table.name: {
            figure: None if counts is None else counts[figure].get(table.name, 0)
            for figure in _FIGURES
        }
        for table in lake.plan.all_tables
    }


def _counts(lake: DeployedLake, quarantine: CatalogTable | None) -> Counts | None:
    current = None if quarantine is None else quarantine.current
    if quarantine is None or current is None or (current.rows, current.live_rows) == (0, 0):
        return {figure: {} for figure in _FIGURES}
    if missing_modules("read"):
        return None
    try:
        return _counted(lake, quarantine.location)
    except ComponentFailed:
        return None  # `cdclake quarantine` gives the reason


@lru_cache(maxsize=1)
def _counted(lake: DeployedLake, location: str) -> Counts:
    """Count the events; each commit changes the location of the metadata."""
    from cdclake.jobs.reader.quarantine_counts import quarantined_events, withheld_events

    del location
    with TemporaryDirectory() as spill:
        reader = lake.reader(Path(spill))
        return {"quarantined": quarantined_events(reader), "withheld": withheld_events(reader)}
