"""Databases that the demo loads: their files, and the statements that change them."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.local.demo.pinned_files import PinnedFiles
from cdclake.local.demo.sample_database import SAMPLES, SampleDatabase, numbered
from tests.given_folders import given_folder, needs_files

PAGILA = SAMPLES["pagila"]
CONTENT = {name: f"-- {name}\n".encode() for name in PAGILA.files}
HASHES = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}


@dataclass
class Served:
    """Folder that a real HTTP server serves, and the files that were asked for."""

    folder: Path
    address: str = ""
    asked: list[str] = field(default_factory=list)

    def database(self, hashes: dict[str, str]) -> SampleDatabase:
        return replace(PAGILA, pinned=PinnedFiles("pagila", self.address, hashes))


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    found = Served(tmp_path / "origin")
    found.folder.mkdir()
    for name, content in CONTENT.items():
        (found.folder / name).write_bytes(content)

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, code: object = "-", size: object = "-") -> None:
            found.asked.append(self.path.lstrip("/"))

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(found.folder)))
    found.address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("CDCLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("CDCLAKE_PAGILA", raising=False)
    monkeypatch.delenv("CDCLAKE_MOMA", raising=False)
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


def test_a_pinned_database_is_downloaded_once(served: Served) -> None:
    folder = served.database(HASHES).folder(None)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == CONTENT
    assert served.database(HASHES).folder(None) == folder
    assert sorted(served.asked) == sorted(CONTENT)


def test_downloads_are_in_the_named_cache(served: Served, tmp_path: Path) -> None:
    assert served.database(HASHES).folder(None).parent == tmp_path / "cache"


def test_a_cache_that_cannot_be_used_is_named(served: Served, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(InputError, match="cannot be used: Not a directory") as refused:
        served.database(HASHES).folder(None)
    assert "CDCLAKE_CACHE" in refused.value.remedy


def test_a_damaged_copy_is_downloaded_again(served: Served) -> None:
    database, name = served.database(HASHES), PAGILA.files[0]
    (database.folder(None) / name).write_text("damaged")
    assert (database.folder(None) / name).read_bytes() == CONTENT[name]
    assert served.asked.count(name) == 2


def test_a_file_with_another_hash_is_refused_and_not_kept(served: Served) -> None:
    database = served.database({**HASHES, PAGILA.files[1]: "0" * 64})
    assert database.pinned is not None
    with pytest.raises(InputError, match=f"{PAGILA.files[1]} has the SHA-256") as refused:
        database.folder(None)
    assert "--data or CDCLAKE_PAGILA" in refused.value.remedy
    assert [file.name for file in database.pinned.cache.iterdir()] == [PAGILA.files[0]]


def test_a_missing_file_is_refused_with_the_remedy(served: Served) -> None:
    (served.folder / PAGILA.files[1]).unlink()
    with pytest.raises(InputError, match=r"could not download .*pagila-data\.sql.*404") as refused:
        served.database(HASHES).folder(None)
    assert "--data or CDCLAKE_PAGILA" in refused.value.remedy


def test_a_folder_goes_before_a_download(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDCLAKE_PAGILA", str(served.folder))
    assert served.database(HASHES).folder(None) == served.folder
    with pytest.raises(InputError, match=r"has no pagila-schema\.sql"):
        served.database(HASHES).folder(tmp_path)
    assert not served.asked


@pytest.mark.usefixtures("served")
def test_a_database_without_a_pinned_source_needs_a_folder() -> None:
    with pytest.raises(InputError, match="moma is not downloaded") as refused:
        SAMPLES["moma"].folder(None)
    assert "CDCLAKE_MOMA" in refused.value.remedy


@needs_files("pagila")
def test_the_pinned_hashes_are_those_of_the_given_files() -> None:
    assert PAGILA.pinned is not None
    assert "/eb65be5bc01833c4a4b716e611b82d0f680e359a" in PAGILA.pinned.address
    assert dict(PAGILA.pinned.hashes) == {
        name: hashlib.sha256((given_folder("pagila") / name).read_bytes()).hexdigest()
        for name in PAGILA.files
    }


@pytest.mark.parametrize("database", SAMPLES.values(), ids=list(SAMPLES))
def test_a_folder_without_a_file_is_refused_with_its_origin(
    tmp_path: Path, database: SampleDatabase
) -> None:
    (tmp_path / database.files[0]).touch()
    with pytest.raises(InputError, match=database.files[1]) as refused:
        database.check(tmp_path)
    assert database.origin.split()[0] in refused.value.remedy
    assert database.folder_key in refused.value.remedy


@pytest.mark.parametrize("database", SAMPLES.values(), ids=list(SAMPLES))
def test_its_statements_change_tables_that_are_streamed(database: SampleDatabase) -> None:
    plan = load_plan(database.pipeline)
    assert plan.source_database == database.name
    declared = {table.table for table in plan.tables}
    changes = database.changes()
    for statement in changes:
        words = statement.sql.replace("public.", "").split()
        assert declared & set(words[1:3]), statement.sql
    assert len(list(numbered(changes))) == len(changes) >= 8
