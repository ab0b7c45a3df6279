"""A lake's folder: private, and with secrets that stay."""

import json
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdclake.errors import InputError
from cdclake.local.process.home import Home, read_json, write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_environment_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "x" / ".." / "y"))
    assert Home.from_environment().path == tmp_path / "y"
    monkeypatch.delenv("CDCLAKE_HOME")
    assert Home.from_environment().path.name == ".cdclake"


def test_secrets_are_private_and_stay(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    first = home.secret("superuser_password")
    home.create()
    assert home.secret("superuser_password") == first
    assert len({home.secret(n) for n in ("superuser_password", "replication_password")}) == 2
    assert mode(home.secrets_file) == 0o600
    assert mode(home.run) == mode(home.logs) == 0o700
    assert mode(home.path) & 0o044 == 0, "nobody else may list the folder"


def test_an_unknown_secret_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    with pytest.raises(InputError, match="no 'other'"):
        home.secret("other")


def test_a_folder_that_cannot_be_made_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="CDCLAKE_HOME"):
        Home(tmp_path / "file" / "home").create()
    with pytest.raises(InputError, match="Not a directory") as refused:
        read_json(tmp_path / "file" / "state.json")
    assert "CDCLAKE_HOME" in refused.value.remedy


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    assert read_json(path) == {}
    path.write_text("{")
    with pytest.raises(InputError, match=r"ports\.json"):
        read_json(path)


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomically(path, "{}")

    def write() -> None:
        for size in range(300):
            write_atomically(path, json.dumps({"x": "y" * size * 100}))

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        while not writing.done():
            read_json(path)
    writing.result()


def test_of_two_commands_the_second_waits(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait()
        with home.changing():
            order.append("second")

    waiting = threading.Thread(target=second)
    waiting.start()
    with home.changing():
        with home.changing():
            inside.set()
        waiting.join(0.3)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_secret_can_be_forgotten(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.remember("source_dsn", "postgresql://u:p@h/d")
    kept = home.secret("mask_salt")
    home.forget("source_dsn")
    assert "source_dsn" not in home.secrets_file.read_text()
    assert home.secret("mask_salt") == kept and mode(home.secrets_file) == 0o600


def test_a_secret_of_several_lines_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    with pytest.raises(InputError, match="source_dsn has a line break"):
        home.remember("source_dsn", "host=h\npassword=hunter22")
    assert "hunter22" not in home.secrets_file.read_text()
    home.remember("source_dsn", "host=h password=a\u2028b=c")
    assert home.secret("source_dsn") == "host=h password=a\u2028b=c"


@pytest.mark.parametrize(
    "text",
    [
        "connect to postgresql://owner:hunter22@db.example.org/d",
        "host=h password=hunter22 user=u",
        "make_conninfo(password='hunter22')",
        '{"password": "hunter22"}',
        "the salt is {salt}",
    ],
)
def test_no_secret_stays_in_a_text(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path / "home")
    home.create()
    salt = home.secret("mask_salt")
    cleaned = home.without_secrets(text.replace("{salt}", salt))
    assert "hunter22" not in cleaned and salt not in cleaned and "***" in cleaned
