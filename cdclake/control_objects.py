"""Names and JSON format of the control objects: the one place that knows them.

| object | written by | read by |
|---|---|---|
| `progress.json` | the stream, after every batch (`Progress`) | status, verify, operations |
| `repairs/<table>.<verb>.json` | `replay`, `resync`, `forget` | the stream, which removes it |
| `repaired/<table>.<verb>.json` | the stream: the outcome of a request | the requesting command |
| `erasures/<table>.json` | `forget`: hashed keys (`Erasures`) | `forget`, stream, two functions |
| `erased/<table>.json` | the jobs that erase rows, with their leases held | `forget` |
| `late/<table>.json` | `apply_changes`, `rebuild_tables`: an unfinished erasure | both jobs |
| `forgets/<id>.json` | `forget --target aws`: keys to erase | `forget_rows`, which removes it |
| `resume/<table>.json` | `resume`, `resync` and `up` | the stream, which removes it |
| `widened.json` | source check, `verify`: wider column types | the jobs, over their plan |
| `widened_changelogs.json` | the stream: wider changelogs | two functions of Firehose |
| `new_columns.json` | source check, `verify`: new columns | the stream, if they stop a table |
| `published.json` | the stream: how many refused events its metrics have counted | the stream |
| `verified.json` | `verify`: when each table was compared | `status` |
| `relations.json` | `up`, `resync`, `status`; on AWS source check and preparation | its writers |
| `former_relations.json` | preparation: `relations.json` from before an epoch | preparation |
| `pause.json` | `pause --target aws`, removed by `resume` | the stream keeper, the stream |
| `derived/<table>.json` | `refresh_derived`: how far the table is refreshed | `refresh_derived` |
| `polls/<table>.json` | `poll_tables`: how far it has read | `poll_tables`, status, verify |
| `polls/<table>.error.json` | `poll_tables`: why the last poll failed | status, verify |
| `loads/<epoch>.json` | `load_tables`: the LSN of an epoch's bulk load | `up`, `load_tables` |
| `probes/<id>.json` | the probe job, which deletes it again | none |
| `leases/<table>.json` | the job that holds the lease (`Leases`) | the other jobs |

The keys are stored in running lakes: renaming one breaks a deployment that is updated or rolled
back. Reports, the order of the stream's deployment and the start of a bulk load have their names
in `cdclake.naming`. `cdclake.control_access` lists which deployed job may write which object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

Json = dict[str, Any]
REPLAY, RESYNC, FORGET = "replay", "resync", "forget"
PROGRESS, WIDENED, NEW_COLUMNS = "progress.json", "widened.json", "new_columns.json"
WIDENED_CHANGELOGS = "widened_changelogs.json"
VERIFIED, PAUSE, PUBLISHED = "verified.json", "pause.json", "published.json"
REQUESTS, OUTCOMES, RESUMES, LEASES = "repairs", "repaired", "resume", "leases"
DERIVED, POLLS, PROBES = "derived", "polls", "probes"
ERASURES, ERASED, FORGETS, LATE = "erasures", "erased", "forgets", "late"
_SKIP_GAP = "given up"
_COLUMNS = "columns"


def request_name(table: str, verb: str) -> str:
    """Return the name of a table's request."""
    return f"{REQUESTS}/{table}.{verb}.json"


def outcome_name(table: str, verb: str) -> str:
    """Return the name of the outcome of a table's request."""
    return f"{OUTCOMES}/{table}.{verb}.json"


def resume_name(table: str) -> str:
    """Return the name of a table's resume request."""
    return f"{RESUMES}/{table}.json"


def lease_name(table: str) -> str:
    """Return the name of a table's lease."""
    return f"{LEASES}/{table}.json"


def derived_name(table: str) -> str:
    """Return the name of a derived table's progress."""
    return f"{DERIVED}/{table}.json"


def poll_name(table: str) -> str:
    """Return the name of a polled table's progress."""
    return f"{POLLS}/{table}.json"


def poll_error_name(table: str) -> str:
    """Return the name of the reason why a table's last poll failed."""
    return f"{POLLS}/{table}.error.json"


def erasures_name(table: str) -> str:
    """Return the name of a table's register of erased keys."""
    return f"{ERASURES}/{table}.json"


def erased_name(table: str) -> str:
    """Return the name of the object that ends an erasure: older files with its rows are removed."""
    return f"{ERASED}/{table}.json"


def late_name(table: str) -> str:
    """Return the name of the note that events of erased keys, which came late, are being erased."""
    return f"{LATE}/{table}.json"


def forget_name(order: str) -> str:
    """Return the name of the keys that a run of `forget_rows` erases."""
    return f"{FORGETS}/{order}.json"


def split_request_name(name: str) -> tuple[str, str]:
    """Return table and verb of a request, from its name within the folder of requests."""
    table, verb, _ = name.split(".")
    return table, verb


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Request to retry a table's quarantined events."""

    id: str
    repeated: int = 0  # how often it was requested again while it was pending

    def to_json(self) -> Json:
        """Return the content of the control object."""
        return {"id": self.id} | ({"repeated": self.repeated} if self.repeated else {})

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> ReplayRequest:
        """Parse the content of the control object."""
        return ReplayRequest(str(content["id"]), content.get("repeated", 0))


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Request to erase rows below the positions that the register has for these hashes of keys.

    It is written before the keys are registered at `position`. The job of a table that Firehose
    delivers leaves it until `not_before`, in seconds since 1970: events may be on their way.
    """

    id: str
    hashes: tuple[str, ...]
    position: str = ""  # as in requests of earlier versions
    not_before: float = 0.0

    def is_registered(self, positions: Mapping[str, str]) -> bool:
        """Check whether the register's positions include those of this erasure, or later ones."""
        return all(key in positions and positions[key] >= self.position for key in self.hashes)

    def to_json(self) -> Json:
        """Return the content of the control object."""
        return {**asdict(self), "hashes": list(self.hashes)}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> ForgetRequest:
        """Parse the content of the control object."""
        position, not_before = content.get("position", ""), content.get("not_before", 0.0)
        return ForgetRequest(str(content["id"]), tuple(content["hashes"]), position, not_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEnd:
    """End of the connector's incremental snapshot of a table."""

    status: str  # Debezium's, e.g. SUCCEEDED or ABORTED
    rows: int
    # End offsets of the table's topic by partition, when the snapshot had ended.
    offsets: Mapping[int, int] = field(default_factory=dict)

    def to_json(self) -> Json:
        """Return the value of a resync request's `ended`."""
        offsets = {str(partition): end for partition, end in self.offsets.items()}
        return {"status": self.status, "rows": self.rows, "offsets": offsets}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> ScanEnd:
        """Parse the value of a resync request's `ended`."""
        offsets = {int(partition): end for partition, end in content.get("offsets", {}).items()}
        return ScanEnd(status=content["status"], rows=int(content.get("rows", 0)), offsets=offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResyncRequest:
    """Request to delete a table's stale rows once the connector has read the table again."""

    id: str
    position: str  # rows whose newest event is older are stale
    notified: int  # offset of the connector's next notification, when the request was written
    rejoins: bool = False  # the table has missed changes, or values of new columns
    ended: ScanEnd | None = None  # set by the stream when the connector has read the table
    # Next offsets of the table by partition, as the stream had read them before the request; none
    # in requests of earlier versions. Their events are older than all that the snapshot reads.
    offsets: Mapping[int, int] = field(default_factory=dict)
    topic_id: str = ""  # of these offsets

    def with_end(self, ended: ScanEnd) -> ResyncRequest:
        """Return the request with the end of the connector's snapshot."""
        return replace(self, ended=ended)

    def to_json(self) -> Json:
        """Return the content of the control object."""
        content = {
            "id": self.id,
            "position": self.position,
            "notified": self.notified,
            "rejoins": self.rejoins,
        }
        if self.offsets:
            offsets = {str(partition): end for partition, end in self.offsets.items()}
            content |= {"offsets": offsets, "topic_id": self.topic_id}
        return content | ({} if self.ended is None else {"ended": self.ended.to_json()})

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> ResyncRequest:
        """Parse the content of the control object."""
        ended = content.get("ended")
        return ResyncRequest(
            id=str(content["id"]),
            position=content["position"],
            notified=content["notified"],
            rejoins=bool(content.get("rejoins")),
            ended=None if ended is None else ScanEnd.from_json(ended),
            offsets={int(p): end for p, end in content.get("offsets", {}).items()},
            topic_id=content.get("topic_id", ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """Request to a stopped table to read its gap and rejoin."""

    skip_gap: bool = False  # continue with the oldest event that Kafka still has
    columns_changed: bool = False  # only if columns or refused events were the reason for the stop
    has_snapshot: bool = False  # a new epoch's snapshot replaces the rows of the skipped gap

    def to_json(self) -> Json:
        """Return the content of the control object."""
        gap = {"gap": _SKIP_GAP} if self.skip_gap else {}
        snapshot = {"snapshot": True} if self.has_snapshot else {}
        return gap | snapshot | ({"mended": _COLUMNS} if self.columns_changed else {})

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> ResumeRequest:
        """Parse the content of the control object."""
        return ResumeRequest(
            skip_gap=content.get("gap") == _SKIP_GAP,
            columns_changed=content.get("mended") == _COLUMNS,
            has_snapshot=bool(content.get("snapshot")),
        )


@dataclass(frozen=True, slots=True)
class Lease:
    """Holder of a table's lease, until `expires_at` (seconds since 1970)."""

    owner: str
    expires_at: float

    def to_json(self) -> Json:
        """Return the content of the control object."""
        return {"owner": self.owner, "expires_at": self.expires_at}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Lease:
        """Parse the content of the control object."""
        return Lease(content["owner"], content["expires_at"])


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Progress of a derived table in one of its sources.

    `through` is a time of ingestion in microseconds since 1970, or Iceberg's sequence number for a
    changelog that Firehose writes. `floor` is the greatest truncate that the state had applied,
    `rebuilt` the id of its last rebuild.
    """

    through: int
    floor: str
    rebuilt: str = ""


@dataclass(frozen=True, slots=True)
class DerivedProgress:
    """Content of a derived table: the result of a definition over its sources."""

    definition: str
    sources: Mapping[str, SourceProgress]
    maintained_at: float  # seconds since 1970

    def to_json(self) -> Json:
        """Return the content of the control object."""
        sources = {name: [at.through, at.floor] for name, at in self.sources.items()}
        return {
            "definition": self.definition,
            "sources": sources,
            "rebuilt": {name: at.rebuilt for name, at in self.sources.items() if at.rebuilt},
            "maintained_at": self.maintained_at,
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> DerivedProgress:
        """Parse the content of the control object."""
        rebuilt = content.get("rebuilt", {})
        sources = {
            name: SourceProgress(through, floor, rebuilt.get(name, ""))
            for name, (through, floor) in content["sources"].items()
        }
        return DerivedProgress(content["definition"], sources, content["maintained_at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PollProgress:
    """Last poll of a table. Times are microseconds since 1970, by the source's clock."""

    read_at: int = 0  # when it took its snapshot
    swept_at: int = 0  # when the last poll did that read the whole table
    bound: int = 0  # no transaction that the snapshot lacks began before
    epoch: int = 0  # in the positions of its rows; 0: not known
    lsn: int = 0  # in these positions, too
    source_lsn: int = 0  # of its snapshot of a primary; 0: not known, or of a replica
    slot: int = 0  # in the offsets of the rows that it quarantined
    refused: int = 0  # rows that it could not store
    ingested: int = 0  # newest time of ingestion in the changelog
    definition: str = ""  # digest of what was read
    run_started: float = 0.0  # seconds since 1970, by the job's clock
    run_plan: str = ""  # URI of the run's plan

    def to_json(self) -> Json:
        """Return the content of the control object."""
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> PollProgress:
        """Parse the content of the control object; ignore keys that a newer version has added."""
        return PollProgress(**known_fields(PollProgress, content))


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTotals:
    """Numbers of events that a stream has refused since it first ran."""

    quarantined: int = 0  # without those that a rule withholds
    withheld: int = 0

    def to_json(self) -> Json:
        """Return the content of the control object."""
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RefusedTotals:
        """Parse the content of the control object."""
        return RefusedTotals(
            quarantined=content.get("quarantined", 0), withheld=content.get("withheld", 0)
        )


def known_fields(kind: type[Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content's values for fields of the class, without keys of a newer version.

    So a deployment can go back to the version before.
    """
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in content.items() if name in names}


def outcome_content(request: str, result: Mapping[str, Any]) -> Json:
    """Return the content of a request's outcome: its id and the result."""
    return {"id": request, **result}


def failed_result(error: Exception) -> Json:
    """Return the result of a request that failed, with the first line of the error."""
    return {"error": str(error).splitlines()[0]}
