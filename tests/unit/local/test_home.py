"""A lake's folder: private, and with secrets that stay."""

import json
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from cdclake.cli.main import main
from cdclake.errors import InputError
from cdclake.local import shutdown
from cdclake.local.lake import stack
from cdclake.local.process.home import SERVER_CREDENTIALS, Home, read_json, write_atomically


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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's project with folders named as those of a lake, which CDCLAKE_HOME names."""
    for name in ("run/mine.txt", "clients/client.py", "data/kafka/notes", "logs/mine.log"):
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text("mine")
    (tmp_path / "project").chmod(0o1777)
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "project"))
    return tmp_path / "project"


def entries(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}


def test_purge_of_a_folder_without_a_lake_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = entries(project)
    assert shutdown.purged_parts(Home(project)) == []
    with pytest.raises(SystemExit) as ended:
        main(["down", "--purge", "--yes", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (ended.value.code, answer["deleted"], entries(project)) == (0, [], before)


def test_a_folder_with_other_files_becomes_no_home(project: Path) -> None:
    before = entries(project)
    with pytest.raises(InputError, match="not the folder of a lake") as refused:
        Home(project).create()
    assert str(project / ".cdclake") in refused.value.remedy and entries(project) == before
    Home(project / ".cdclake").create()


def test_a_home_is_created_around_what_commands_leave(tmp_path: Path) -> None:
    Home(tmp_path / "demo-1a2b3c").create()
    for folder in ("data", "run", "logs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "logs" / "cdclake-error-20261130T120000.log").touch()
    (tmp_path / ".secrets.properties-x1").touch()
    (tmp_path / "lost+found").mkdir()  # of a new file system
    home = Home(tmp_path)
    home.create()
    assert home.is_lake() and mode(home.run) == 0o700


def test_a_home_that_cannot_be_entered_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of another user; the tests run as root."""
    refused = PermissionError(13, "Permission denied")
    monkeypatch.setattr(Path, "is_file", Mock(side_effect=refused))
    with pytest.raises(InputError, match="cannot be used: Permission denied"):
        Home(tmp_path).is_lake()


def test_a_home_whose_secrets_were_lost_is_still_a_lake(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.state_file.write_text("{}")
    home.private_data("kafka")
    home.create()
    assert home.run.is_dir()


@pytest.mark.parametrize("left", [None, "", "kafka_password=one\n"])
def test_lost_secrets_of_a_lake_are_not_replaced(tmp_path: Path, left: str | None) -> None:
    home = Home(tmp_path / "home")
    home.create()
    write_atomically(home.state_file, "{}")
    home.secrets_file.unlink()
    if left is not None:
        home.secrets_file.write_text(left)
    with home.changing():
        assert home.secret_names() == {*SERVER_CREDENTIALS}
    with pytest.raises(InputError, match="has no 'superuser_password'") as refused:
        stack.bring_up(home)
    assert "restore the file" in refused.value.remedy
    shutdown.down(home, purge=True)  # works without them


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


def test_state_of_a_newer_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.state_file.write_text(json.dumps({"epoch": 1, "other": 2, "newer": 3}))
    monkeypatch.setenv("CDCLAKE_HOME", str(home.path))
    with pytest.raises(SystemExit) as ended:
        main(["down", "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert ended.value.code == 2
    assert error["message"].endswith(
        "lake.json was written by a newer version of cdclake (newer, other)"
    )


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
