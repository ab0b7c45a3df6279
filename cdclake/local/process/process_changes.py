"""Changes of a lake's processes during a command, with the reason of each."""

from __future__ import annotations

from dataclasses import dataclass

from cdclake.local.process.home import Home, read_json
from cdclake.local.process.process_spec import Desired, Observed
from cdclake.local.process.supervisor_client import observe


@dataclass(frozen=True, slots=True)
class Processes:
    """The requested processes and their states at one time."""

    desired: Desired
    observed: Observed

    @staticmethod
    def of(home: Home) -> Processes:
        """Read the processes of a home."""
        return Processes(Desired.from_json(read_json(home.desired_file)), observe(home))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the requested processes."""
        return tuple(spec.name for spec in self.desired.specs)

    def pid(self, name: str) -> int | None:
        """Return the process id; None if the process does not run."""
        seen = self.observed.component(name)
        return None if seen is None else seen.pid

    def changes(self, after: Processes) -> list[str]:
        """Describe every process that differs in `after`, with the reason."""
        found = [f"stopped {name}" for name in self.names if name not in after.names]
        for name in after.names:
            if after.pid(name) not in (None, self.pid(name)):
                found.append(self._started(name, after))
        return found

    def _started(self, name: str, after: Processes) -> str:
        old, new = self.desired.spec(name), after.desired.spec(name)
        if old is None or new is None:
            return f"started {name}"
        if self.pid(name) is None:
            return f"started {name}, which was dead"
        reasons = old.differences(new)
        return f"restarted {name}: {'; '.join(reasons) or 'its process had ended'}"
