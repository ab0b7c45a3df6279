"""Last comparison of each table with the source that has found a verdict: a control object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cdclake.control_objects import VERIFIED
from cdclake.stream_requests import ControlStore


@dataclass(frozen=True, slots=True)
class LastVerified:
    """The newest comparison of one table that has shown whether it is equal."""

    at: str  # ISO time of its end
    equal: bool

    @property
    def seconds(self) -> float:
        """Return the time of its end in seconds since 1970."""
        return datetime.fromisoformat(self.at).timestamp()


def note_verified(control: ControlStore, equal: Mapping[str, bool]) -> None:
    """Note by table whether it was equal just now; the others keep what is noted."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    noted = {name: {"at": at, "equal": is_equal} for name, is_equal in equal.items()}
    stored = control.read(VERIFIED)
    control.write(VERIFIED, {**(stored.content if stored else {}), **noted})


def read_verified(control: ControlStore) -> dict[str, LastVerified]:
    """Return the newest comparison of each table that has had one."""
    stored = control.read(VERIFIED)
    content = stored.content if stored else {}
    return {name: LastVerified(entry["at"], entry["equal"]) for name, entry in content.items()}
