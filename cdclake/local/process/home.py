"""One lake's folder, with its data, logs, state and secrets."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cdclake.errors import ComponentFailed, InputError
from cdclake.passwords import without_passwords
from cdclake.places import user_project

SERVER_CREDENTIALS = (
    "aws_access_key_id", "aws_secret_access_key", "kafka_password", "connect_password",
)  # fmt: skip
LASTING_SECRETS = ("superuser_password", "replication_password", "mask_salt", "home_id")
SHORTEST_SECRET = 6  # replacing a shorter text would destroy the message
TEMPORARY_PREFIX = "demo-"  # of homes below a home, of demos and rehearsals
ERROR_PREFIX = "cdclake-error-"  # of logs of unexpected errors
LOCK_WAIT_S = 120.0
HELD = threading.local()  # homes that this thread has locked


@dataclass(frozen=True)
class Home:
    """Paths of one lake; a `Home` has no side effects until `create` makes its folders."""

    path: Path

    @classmethod
    def from_environment(cls) -> Home:
        """Return CDCLAKE_HOME, or `.cdclake` in the clone or the user's project."""
        named = os.environ.get("CDCLAKE_HOME")
        try:
            return cls(Path(named).expanduser().resolve() if named else user_project() / ".cdclake")
        except (OSError, RuntimeError) as error:  # an unknown user, or a deleted current folder
            place = f"CDCLAKE_HOME={named}" if named else "the current folder"
            raise InputError(
                f"{place} cannot be used: {error}", "set CDCLAKE_HOME to an absolute path"
            ) from error

    @property
    def logs(self) -> Path:
        """Folder of the components' logs."""
        return self.path / "logs"

    @property
    def run(self) -> Path:
        """Folder of generated configuration and process state."""
        return self.path / "run"

    @property
    def clients(self) -> Path:
        """Folder of files with credentials, for the user's own clients."""
        return self.path / "clients"

    @property
    def secrets_file(self) -> Path:
        """File of the generated secrets."""
        return self.path / "secrets.properties"

    @property
    def state_file(self) -> Path:
        """File with the lake's pipeline and its progress between commands."""
        return self.path / "lake.json"

    @property
    def ports_file(self) -> Path:
        """File of the components' ports."""
        return self.path / "ports.json"

    @property
    def desired_file(self) -> Path:
        """File with the processes that the command line requests."""
        return self.run / "desired.json"

    @property
    def observed_file(self) -> Path:
        """File with the process states that the supervisor reports."""
        return self.run / "observed.json"

    @property
    def earlier_leases_file(self) -> Path:
        """File that exists until `up` has ended the runs of an earlier supervisor."""
        return self.run / "earlier_leases"

    @property
    def java_file(self) -> Path:
        """File with the path of the Java that the running components use."""
        return self.run / "java"

    @property
    def supervisor_lock(self) -> Path:
        """File that the supervisor locks for its lifetime; it contains its pid."""
        return self.run / "supervisor.lock"

    def forget_processes(self) -> None:
        """Delete the state of processes, but not the locks, which commands may wait for."""
        for entry in self.run.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry not in (self._change_lock, self.supervisor_lock):
                entry.unlink()

    def data(self, component: str) -> Path:
        """Return the component's data folder."""
        return self.path / "data" / component

    def log(self, component: str) -> Path:
        """Return the component's log file."""
        return self.logs / f"{component}.log"

    def is_lake(self) -> bool:
        """Return True if the folder is a lake's, also one whose secrets were lost."""
        try:
            return self.state_file.is_file() or "home_id" in self._read_secrets()
        except OSError as err:
            raise _unusable(self.path, err) from err

    def create(self) -> None:
        """Create the private folders, and the secrets if they are missing.

        Raises InputError, without a change, if the folder has other files: it may be the user's
        project, and `down --purge` would delete some of them.

        For root, the folders down to data/ can be traversed but not listed (0711): PostgreSQL
        refuses to run as root, and the user that runs it must reach its data folder.
        """
        way = 0o711 if os.geteuid() == 0 else 0o700
        try:
            self._refuse_other_files()
            _make_folder(self.path, way)
            self._create_secrets()  # first, since they mark the folder as a lake's
            _make_folder(self.path / "data", way)
            _make_folder(self.logs, 0o700)
            _make_folder(self.run, 0o700)
        except OSError as err:
            raise _unusable(self.path, err) from err

    def secret(self, name: str) -> str:
        """Return a value of secrets.properties; raise InputError if it is missing."""
        values = self._read_secrets()
        if name not in values:
            raise InputError(
                f"{self.secrets_file} has no {name!r}",
                "restore the file, or set CDCLAKE_HOME to a new folder for a new lake",
            )
        return values[name]

    def check_secrets(self) -> None:
        """Raise InputError if a secret is missing that the lake's databases and rows depend on."""
        for name in LASTING_SECRETS:
            self.secret(name)

    def remember(self, name: str, value: str) -> None:
        """Store another secret; raise InputError if it has more than one line."""
        if "\n" in value or "\r" in value:
            raise InputError(f"{name} has a line break", "write it in one line")
        values = {**self._read_secrets(), name: value}
        self._write_secrets(values)

    def without_secrets(self, text: str) -> str:
        """Return the text with this lake's secrets and all passwords of DSNs as `***`."""
        try:
            values = list(self._read_secrets().values())
        except OSError:
            values = []
        for value in sorted(values, key=len, reverse=True):
            text = text.replace(value, "***") if len(value) >= SHORTEST_SECRET else text
        return without_passwords(text)

    def secret_names(self) -> frozenset[str]:
        """Return the names of the stored secrets."""
        return frozenset(self._read_secrets())

    def forget(self, *names: str) -> None:
        """Delete stored secrets."""
        kept = {key: value for key, value in self._read_secrets().items() if key not in names}
        self._write_secrets(kept)

    def private_data(self, component: str) -> Path:
        """Create the component's data folder, which only its owner may enter, and return it."""
        folder = self.data(component)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)  # an earlier version may have created it for everyone
        return folder

    def _read_secrets(self) -> dict[str, str]:
        if not self.secrets_file.is_file():
            return {}
        lines = self.secrets_file.read_text().split("\n")
        parts = (line.partition("=") for line in lines)
        return {key: value for key, equals, value in parts if equals}

    def _write_secrets(self, values: dict[str, str]) -> None:
        text = "".join(f"{key}={value}\n" for key, value in values.items())
        write_atomically(self.secrets_file, text, is_lasting=True)

    def _refuse_other_files(self) -> None:
        if not self.path.exists() or self.is_lake():
            return
        if not all(_is_remnant(entry) for entry in self.path.iterdir()):
            raise InputError(
                f"{self.path} is not empty, and is not the folder of a lake",
                f"set CDCLAKE_HOME to a new folder, such as {self.path / '.cdclake'}",
            )

    def _create_secrets(self) -> None:
        """Add missing secrets, but no lasting ones to a lake: its data was made with lost ones."""
        values = self._read_secrets()
        names = SERVER_CREDENTIALS if self._has_data() else (*LASTING_SECRETS, *SERVER_CREDENTIALS)
        missing = [name for name in names if name not in values]
        if missing:
            values.update({name: secrets.token_urlsafe(24) for name in missing})
            self._write_secrets(values)

    def _has_data(self) -> bool:
        data = self.path / "data"
        return self.state_file.is_file() or (data.is_dir() and any(data.iterdir()))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lake's lock, so that only one command changes it at a time.

        The lock is re-entrant within a thread, so a command may hold it around all its steps.
        """
        with self._locked(LOCK_WAIT_S) as is_held:
            if not is_held:
                raise ComponentFailed(
                    f"another command has been changing the lake {self.path} "
                    f"for {LOCK_WAIT_S:.0f} s",
                    "wait until it ends, or stop it",
                    component="supervisor",
                )
            yield

    @contextmanager
    def changing_if_free(self) -> Iterator[bool]:
        """Hold the lock as `changing` does, or yield False if another command holds it."""
        with self._locked(0) as is_held:
            yield is_held

    def is_being_changed(self) -> bool:
        """Return True if a command holds the lock."""
        try:
            with self._change_lock.open() as lock:
                return is_locked(lock.fileno())
        except FileNotFoundError:
            return False

    @property
    def _change_lock(self) -> Path:
        return self.run / "change.lock"

    @contextmanager
    def _locked(self, wait_s: float) -> Iterator[bool]:
        """Hold the lock; yield False if another command still holds it after `wait_s`."""
        held: set[Path] = HELD.__dict__.setdefault("homes", set())
        if self.path in held:
            yield True
            return
        self.create()
        with self._change_lock.open("w") as lock:
            deadline = time.monotonic() + wait_s
            while not try_lock(lock.fileno()):
                if time.monotonic() >= deadline:
                    yield False
                    return
                time.sleep(0.1)
            held.add(self.path)
            try:
                yield True
            finally:
                held.discard(self.path)


def try_lock(fd: int) -> bool:
    """Try to take the exclusive lock; the kernel releases it when this process dies."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(fd: int) -> bool:
    """Return True if the exclusive lock is held; concurrent checks do not disturb each other."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def write_atomically(path: Path, text: str, *, is_lasting: bool = False) -> None:
    """Replace a file's text; a reader sees the old or the new text, never a part.

    With `is_lasting`, this also holds after a power failure.
    """
    fd, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(fd, "w") as out:
            out.write(text)
            if is_lasting:
                out.flush()
                os.fsync(out.fileno())
        fresh.chmod(0o600)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _make_folder(folder: Path, mode: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)


def _is_remnant(entry: Path) -> bool:
    """Check whether an entry may be in a home that has no lake yet.

    It is left by a demo, by a failed command, or by a command that was killed while it created the
    home. A new file system has `lost+found`.
    """
    if entry.name == "lost+found" or entry.name.startswith(
        (TEMPORARY_PREFIX, ".secrets.properties-")
    ):
        return True
    is_folder = entry.name in ("data", "logs", "run") and entry.is_dir()
    return is_folder and all(each.name.startswith(ERROR_PREFIX) for each in entry.iterdir())


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"the lake's {path} cannot be used: {error.strerror}",
        "set CDCLAKE_HOME to a folder that you own",
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a state file (written atomically); {} if the file is missing."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as err:
        raise _unusable(path, err) from err
    except json.JSONDecodeError as err:
        raise InputError(
            f"{path} is damaged: {err}", "remove it while the lake is down, then `cdclake up`"
        ) from err
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object", "remove it while the lake is down")
    return found


def refuse_newer(kind: type, found: Mapping[str, Any], file: Path | str) -> None:
    """Raise InputError if an object in a state file has fields that its class does not have."""
    unknown = sorted(found.keys() - {each.name for each in fields(kind)})
    if unknown:
        raise InputError(
            f"{file} was written by a newer version of cdclake ({', '.join(unknown)})",
            "use that version, or set CDCLAKE_HOME to another folder",
        )
