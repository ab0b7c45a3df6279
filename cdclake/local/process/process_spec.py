"""What the command line and the supervisor tell each other, as values and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["running", "dead", "stopped", "starting", "failed"]


@dataclass(frozen=True)
class Spec:
    """One process to keep: the same spec again means "leave it alone".

    `env` is complete (nothing is inherited) but for CDCLAKE_HOME and CDCLAKE_COMPONENT, which the
    supervisor adds. `user` needs root. `death_signal` is what the kernel sends it when the
    supervisor dies.
    """

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = "/"
    user: str | None = None
    port: int | None = None
    stop_signal: str = "SIGTERM"
    death_signal: str = "SIGKILL"
    log: str = ""

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Spec:
        return cls(**{**found, "argv": tuple(found["argv"])})


@dataclass(frozen=True)
class Desired:
    """What should run, in the order of starting. Of `specs` only those named in `start` are
    started when they are dead: a dead part comes back when somebody asks, never by itself."""

    generation: int = 0
    specs: tuple[Spec, ...] = ()
    start: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Desired:
        if not found:
            return cls()
        specs = tuple(Spec.from_json(spec) for spec in found["specs"])
        return cls(found["generation"], specs, tuple(found["start"]))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def spec(self, name: str) -> Spec | None:
        return next((spec for spec in self.specs if spec.name == name), None)

    def with_specs(self, specs: tuple[Spec, ...]) -> Desired:
        """The next generation: these specs added or in place of their namesakes, and started."""
        fresh = {spec.name: spec for spec in specs}
        kept = tuple(fresh.pop(spec.name, spec) for spec in self.specs)
        names = tuple(spec.name for spec in specs)
        return Desired(self.generation + 1, (*kept, *fresh.values()), names)

    def without(self, name: str) -> Desired:
        """The next generation, in which that process is stopped."""
        kept = tuple(spec for spec in self.specs if spec.name != name)
        return Desired(self.generation + 1, kept, ())


@dataclass(frozen=True)
class ProcessStatus:
    """One process as the supervisor last saw it."""

    name: str
    pid: int | None
    state: State
    port: int | None
    log: str
    started_at: float | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class Observed:
    """The supervisor's last word; `alive` is added by the reader, who looks at the lock."""

    generation: int = 0
    supervisor_pid: int | None = None
    components: tuple[ProcessStatus, ...] = ()
    alive: bool = False

    @classmethod
    def from_json(cls, found: dict[str, Any], alive: bool) -> Observed:
        if not found:
            return cls(alive=alive)
        seen = tuple(ProcessStatus(**each) for each in found["components"])
        return cls(found["generation"], found["supervisor_pid"], seen, alive)

    def component(self, name: str) -> ProcessStatus | None:
        return next((seen for seen in self.components if seen.name == name), None)

    def living(self) -> frozenset[str]:
        return frozenset(s.name for s in self.components if s.state in ("running", "starting"))
