"""Messages between the command line and the supervisor, as values and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from cdclake.local.process.home import refuse_newer

State = Literal["running", "dead", "stopped", "starting", "failed"]


@dataclass(frozen=True)
class Spec:
    """One process to keep running; an unchanged spec leaves the process alone.

    `env` and `shell` are the whole environment (nothing is inherited) except for CDCLAKE_HOME and
    CDCLAKE_COMPONENT, which the supervisor adds. `shell` comes from the command's own environment,
    so it differs between shells and restarts nothing. `identity` replaces the command and `env`
    where a new version's settings may wait for the next start. `user` requires root. The kernel
    sends `death_signal` to the process when the supervisor dies.
    """

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    shell: dict[str, str] = field(default_factory=dict)
    identity: tuple[str, ...] = ()
    cwd: str = "/"
    user: str | None = None
    port: int | None = None
    stop_signal: str = "SIGTERM"
    death_signal: str = "SIGKILL"
    log: str = ""

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Spec:
        """Create a spec from its JSON object."""
        refuse_newer(cls, found, "desired.json")
        words = {name: tuple(found.get(name, ())) for name in ("argv", "identity")}
        return cls(**{**found, **words})

    def differences(self, other: Spec) -> tuple[str, ...]:
        """Return why a process of this spec must be restarted as `other`; () if it need not.

        Values of the environment stay out of the text, since some are secrets.
        """
        found = []
        if self.port != other.port:
            found.append(f"its port changed from {self.port} to {other.port}")
        if self.user != other.user or (self.cwd != other.cwd and not other.identity):
            found.append("its user or its folder changed")
        if self.identity and other.identity:
            changed = self.identity != other.identity
            return (*found, *(["its program or its data folder changed"] if changed else []))
        if self.argv[:1] != other.argv[:1]:
            found.append(f"its program changed from {self.argv[0]} to {other.argv[0]}")
        if self.argv[1:] != other.argv[1:]:
            found.append("its arguments changed")
        names = {*self.env, *other.env}
        changed_names = sorted(n for n in names if self.env.get(n) != other.env.get(n))
        if changed_names:
            found.append(f"its settings changed: {', '.join(changed_names)}")
        return tuple(found)


@dataclass(frozen=True)
class ScheduledJob:
    """Process that runs on a schedule in EventBridge's syntax, and ends."""

    schedule: str
    spec: Spec

    @property
    def name(self) -> str:
        """Return the job's name, that of its process."""
        return self.spec.name


@dataclass(frozen=True)
class Desired:
    """Processes that should run, in the order of starting.

    Dead processes are started only if they are named in `start`: a dead component is restarted on
    request, never automatically.
    """

    generation: int = 0
    specs: tuple[Spec, ...] = ()
    start: tuple[str, ...] = ()
    scheduled: tuple[ScheduledJob, ...] = ()

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Desired:
        """Create the value from its JSON object, which may be empty."""
        if not found:
            return cls()
        specs = tuple(Spec.from_json(spec) for spec in found["specs"])
        scheduled = tuple(
            ScheduledJob(job["schedule"], Spec.from_json(job["spec"]))
            for job in found.get("scheduled", ())
        )
        return cls(found["generation"], specs, tuple(found["start"]), scheduled)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return asdict(self)

    def spec(self, name: str) -> Spec | None:
        """Return the spec of that name, or None."""
        return next((spec for spec in self.specs if spec.name == name), None)

    def with_specs(self, specs: tuple[Spec, ...]) -> Desired:
        """Return the next generation, with these specs added or replaced, and started."""
        fresh = {spec.name: spec for spec in specs}
        kept = tuple(fresh.pop(spec.name, spec) for spec in self.specs)
        names = tuple(spec.name for spec in specs)
        specs = (*kept, *fresh.values())
        return replace(self, generation=self.generation + 1, specs=specs, start=names)

    def with_scheduled(self, jobs: tuple[ScheduledJob, ...]) -> Desired:
        """Return the next generation, with these scheduled jobs and no others."""
        return replace(self, generation=self.generation + 1, start=(), scheduled=jobs)

    def without(self, name: str) -> Desired:
        """Return the next generation, without that process."""
        kept = tuple(spec for spec in self.specs if spec.name != name)
        return replace(self, generation=self.generation + 1, specs=kept, start=())


@dataclass(frozen=True)
class ProcessStatus:
    """One process in the supervisor's last report."""

    name: str
    pid: int | None
    state: State
    port: int | None
    log: str
    started_at: float | None = None
    exit_code: int | None = None

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> ProcessStatus:
        """Create the status from its JSON object, without what a newer supervisor reports."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in found.items() if name in known})


@dataclass(frozen=True)
class Observed:
    """The supervisor's last report; the reader adds `alive` after checking the lock."""

    generation: int = 0
    supervisor_pid: int | None = None
    components: tuple[ProcessStatus, ...] = ()
    alive: bool = False
    schedules: tuple[dict[str, Any], ...] = ()  # each scheduled job with its last and next run

    @classmethod
    def from_json(cls, found: dict[str, Any], alive: bool) -> Observed:
        """Create the report from its JSON object, which may be empty."""
        if not found:
            return cls(alive=alive)
        seen = tuple(ProcessStatus.from_json(each) for each in found["components"])
        schedules = tuple(found.get("schedules", ()))
        return cls(found["generation"], found["supervisor_pid"], seen, alive, schedules)

    def component(self, name: str) -> ProcessStatus | None:
        """Return the status of that process, or None."""
        return next((seen for seen in self.components if seen.name == name), None)

    def living(self) -> frozenset[str]:
        """Return the names of the processes that are running or starting."""
        return frozenset(s.name for s in self.components if s.state in ("running", "starting"))
