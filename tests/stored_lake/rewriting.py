"""Whether the stored JSON objects survive this code: each is read and written again in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp, state_stamp_json
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import read_json
from cdclake.local.reader.duck import lake_reader
from tests.spark.events import MemoryStore
from tests.stored_lake.stored import StoredLake

Json = dict[str, Any]


def lost_by_rewriting(stored: StoredLake) -> list[str]:
    """Return the paths of all values that a stored object has and the rewritten one has not."""
    pairs = dict([*_objects(stored), *_stamps(stored)])
    assert len(pairs) > 10, pairs  # else the stamps were not found
    return [path for place, (old, new) in pairs.items() for path in _lost(old, new, place)]


def content_of(store: ObjectStore, name: str) -> Json:
    """Return a stored object's content."""
    stored = store.read(name)
    assert stored is not None, name
    return stored.content


def _objects(stored: StoredLake) -> Iterator[tuple[str, tuple[Json, Json]]]:
    lake, memory = stored.lake, MemoryStore()
    progress = Progress.load(lake.control)
    progress.etag = None  # there is none in the memory
    progress.save(memory)  # type: ignore[arg-type]
    old = content_of(lake.control, "progress.json")
    new = json.loads(json.dumps(memory.stored["progress.json"].content))
    yield "progress", (old, {**new, "written_at": old["written_at"]})
    folder, _, name = lake.plan_uri.rpartition("/")
    yield "plan", (content_of(ObjectStore(folder), name), json.loads(lake.plan.to_json()))
    yield "lake", (read_json(lake.home.path / "lake.json"), asdict(LakeState.load(lake.home)))


def _stamps(stored: StoredLake) -> Iterator[tuple[str, tuple[Json, Json]]]:
    catalog = lake_reader(stored.lake).catalog
    for table in stored.lake.plan.tables:
        for name, rewritten in ((table.changes, _changes_stamp), (table.name, _state_stamp)):
            for snapshot in catalog.load(name).snapshots.values():
                if snapshot.stamp is not None:
                    pair = json.loads(snapshot.stamp), json.loads(rewritten(snapshot.stamp))
                    yield f"{name}/{snapshot.id}", pair


def _changes_stamp(text: str) -> str:
    return ChangesStamp.from_json(text).to_json()


def _state_stamp(text: str) -> str:
    return state_stamp_json(state_stamp(text))


def _lost(old: Any, new: Any, path: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        return [lost for key in old for lost in _lost(old[key], new.get(key, ...), f"{path}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [lost for index, pair in pairs for lost in _lost(*pair, f"{path}/{index}")]
    return [] if old == new else [path]
