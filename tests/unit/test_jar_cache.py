"""Jars from a repository on this machine: fetched once, checked, or refused."""

from __future__ import annotations

import hashlib
import io
import resource
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cdclake import jar_cache, places
from cdclake.activity import Advance, Step, listening
from cdclake.errors import InputError
from cdclake.jar_lock import OPTIONAL_PROFILES, OWN_JARS, REPOSITORY, parse_jar_lock
from cdclake.places import JAR_LOCK
from scripts import fetch_jars


class Repository(SimpleHTTPRequestHandler):
    """A repository of files that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    return tmp_path / "jars"


@pytest.fixture
def repository(tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a mirror serves, which the lock and the cache are made for."""
    served = tmp_path / "repository"
    lines = []
    names = {"a": "spark/a.jar", "b": "kafka/b.jar", "c": "trino/c.jar"}
    for name, path in ((name, f"org/{key}/1/{key}.jar") for key, name in names.items()):
        (served / path).parent.mkdir(parents=True)
        (served / path).write_text(name)
        digest = hashlib.sha256(name.encode()).hexdigest()
        lines.append(f"{digest}  {name}  {REPOSITORY}{path}\n")
    (tmp_path / "jars.lock").write_text("".join(lines))
    for module in (jar_cache, places):
        monkeypatch.setattr(module, "IS_INSTALLED", True)
    monkeypatch.setattr(jar_cache, "JARS", jars)
    monkeypatch.setattr(jar_cache, "JAR_LOCK", tmp_path / "jars.lock")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Repository, directory=str(served)))
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv(jar_cache.MIRROR_KEY, f"http://127.0.0.1:{server.server_port}")
    yield served
    server.shutdown()
    server.server_close()


def test_jars_are_fetched_when_they_are_first_needed(
    repository: Path, jars: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = jar_cache.ensure_fetched(jars / "kafka")
    assert {jar.name: jar.read_text() for jar in folder.iterdir()} == {"b.jar": "kafka/b.jar"}
    assert capsys.readouterr().err == f"fetching 1 jars of kafka to {folder}\n"
    (repository / "org/b/1/b.jar").unlink()
    assert jar_cache.ensure_fetched(folder) == folder
    assert capsys.readouterr().err == ""


def test_jars_are_on_the_disk_before_their_folder_has_its_name(
    repository: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr("cdclake.jar_cache.os.sync", lambda: synced.append(has_name()))

    def has_name() -> bool:
        return (jars / "kafka").exists()

    jar_cache.ensure_fetched(jars / "kafka")
    assert synced == [False] and has_name()


class Heard:
    """Listener that keeps the steps."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, Advance | None]] = []

    def begin(self, step: Step) -> None:
        """Keep nothing before the end."""

    def end(self, step: Step) -> None:
        self.ended.append((step.name, step.advance))


def test_a_fetch_is_a_step_and_writes_nothing_itself(
    repository: Path, jars: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = Heard()
    with listening(heard):
        jar_cache.ensure_fetched(jars / "kafka")
        jar_cache.ensure_fetched(jars / "kafka")
    size = len("kafka/b.jar")
    assert heard.ended == [
        ("fetch the jars of kafka", Advance(done=1, total=1, unit="jars", size=size))
    ]
    assert capsys.readouterr().err == ""


def test_a_connection_that_ends_early_is_no_other_jar(
    repository: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_head(self: Repository) -> io.BytesIO:
        self.send_response(200)
        self.send_header("Content-Length", "11")
        self.end_headers()
        return io.BytesIO(b"kafka")

    monkeypatch.setattr(Repository, "send_head", send_head)
    with pytest.raises(InputError, match=r"b\.jar cannot be fetched: IncompleteRead\(5 bytes"):
        jar_cache.ensure_fetched(jars / "kafka")


def test_the_projects_own_jar_comes_with_the_package(repository: Path, jars: Path) -> None:
    folder = jar_cache.ensure_fetched(jars / "spark")
    assert {jar.name for jar in folder.iterdir()} == {"a.jar", "cdclake-iceberg.jar"}


def test_a_jar_with_another_content_is_refused(repository: Path, jars: Path) -> None:
    (repository / "org/b/1/b.jar").write_text("poisoned")
    with pytest.raises(InputError, match=r"kafka/b\.jar is locked with ") as refused:
        jar_cache.ensure_fetched(jars / "kafka")
    assert "report it" in refused.value.remedy
    assert [path.name for path in jars.iterdir()] == [".lock"]


def test_a_missing_jar_is_named_with_its_url(repository: Path, jars: Path) -> None:
    (repository / "org/b/1/b.jar").unlink()
    with pytest.raises(InputError, match=r"/org/b/1/b\.jar cannot be fetched: .*404") as refused:
        jar_cache.ensure_fetched(jars / "kafka")
    assert jar_cache.MIRROR_KEY in refused.value.remedy


def test_a_mirror_that_is_no_url_is_named(
    repository: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(jar_cache.MIRROR_KEY, "mirror/maven2/")
    with pytest.raises(InputError, match=r"mirror/maven2/org/b/1/b\.jar cannot be fetched"):
        jar_cache.ensure_fetched(jars / "kafka")


def test_a_cache_that_cannot_be_written_is_named(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    jars = tmp_path / "file" / "jars"
    monkeypatch.setattr(jar_cache, "JARS", jars)
    with pytest.raises(InputError, match="cannot be used: Not a directory") as refused:
        jar_cache.ensure_fetched(jars / "kafka")
    assert "CDCLAKE_CACHE" in refused.value.remedy


def test_a_disk_that_is_full_is_named(
    repository: Path, jars: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit of the size of files, as a full disk, ends a write after some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, before[1]))
    try:
        with pytest.raises(InputError, match="cannot be written: File too large") as refused:
            jar_cache.ensure_fetched(jars / "kafka")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "CDCLAKE_CACHE" in refused.value.remedy
    assert [path.name for path in jars.iterdir()] == [".lock"]


def test_a_clone_fetches_what_its_setup_leaves_out(
    repository: Path, jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (jar_cache, places):
        monkeypatch.setattr(module, "IS_INSTALLED", False)
    assert not jar_cache.ensure_fetched(jars / "kafka").exists()
    folder = jar_cache.ensure_fetched(jars / "trino")
    assert [jar.read_text() for jar in folder.iterdir()] == ["trino/c.jar"]


def test_a_clone_has_no_other_folder_for_its_jars(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (jar_cache, places):
        monkeypatch.setattr(module, "IS_INSTALLED", False)
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(jar_cache, "JARS", tmp_path / "file" / "jars")
    with pytest.raises(InputError, match="cannot be used: Not a directory") as refused:
        jar_cache.ensure_fetched(tmp_path / "file" / "jars" / "trino")
    assert refused.value.remedy == "make it writable"


def test_setup_and_commands_agree_on_the_optional_jars() -> None:
    assert not {*OPTIONAL_PROFILES} & {*fetch_jars.PROFILES, *OWN_JARS}
    assert {*OPTIONAL_PROFILES} < {*fetch_jars.OPTIONAL}


@pytest.mark.parametrize(
    ("system", "machine"),
    [("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "x86_64"), ("Darwin", "arm64")],
)
def test_postgres_is_locked_for_each_platform(system: str, machine: str) -> None:
    profile = jar_cache.postgres_profile(system, machine)
    locked = [
        name for name in parse_jar_lock(JAR_LOCK.read_text()) if name.startswith(f"{profile}/")
    ]
    assert len(locked) == 1
    assert system.lower() in locked[0]


def test_a_platform_without_postgres_is_refused() -> None:
    with pytest.raises(InputError, match="has no PostgreSQL for linux-s390x") as refused:
        jar_cache.check_locked(jar_cache.postgres_profile("Linux", "s390x"))
    assert refused.value.remedy == (
        "use linux-amd64 or linux-arm64, or an existing database as --source"
    )


def test_a_profile_that_the_lock_lacks_is_refused(repository: Path, jars: Path) -> None:
    with pytest.raises(InputError, match="has no jars 'connect'") as refused:
        jar_cache.ensure_fetched(jars / "connect")
    assert refused.value.remedy == "reinstall cdclake"
