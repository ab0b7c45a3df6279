"""A DSN whose password libpq misreads: every command refuses it, and shows no part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.cli.main import main
from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.jobs.runtime.dsn import dsn_parts
from cdclake.local import doctor
from cdclake.local.lake.lake import LakeState, without_password
from cdclake.local.lake.source_tls import secured
from cdclake.local.process.home import Home
from cdclake.postgres.ownership import Owner
from tests.unit.config.pipelines import VALID

SECRET = ("Xq7kPdRv", "Zw9tLmGs")  # parts of the password, too long to be in random secrets
MISREAD = [
    "postgresql://u:Xq7kPdRv%Zw9tLmGs@127.0.0.1:1/d",
    "u:Xq7kPdRvZw9tLmGs@127.0.0.1:1/d",
    "postgresql://u:Xq7kPdRv Zw9tLmGs@127.0.0.1:1/d",
    "postgresql://u:Xq7kPdRv/Zw9tLmGs@127.0.0.1:1/d",
    "postgresql://u:12/Zw9tLmGs@127.0.0.1:1/d",
    "postgresql://u:Xq7kPdRv@Zw9tLmGs@127.0.0.1:1/d",
    "postgresql://u:Xq7kPdRv@Zw9tLmGs/1@127.0.0.1:1/d",
    "postgresql://u:Xq7kPdRv?1@Zw9tLmGs@127.0.0.1:1/d",
    "postgresql://u:Xq7kPdRv%FFZw9tLmGs@127.0.0.1:1/d",
    "host=127.0.0.1 user=u port=Xq7kPdRv",
    "postgresql://127.0.0.1?user=u&password=Xq7kPdRv@Zw9tLmGs",
    "postgresql://127.0.0.1:1?user=u&password=Xq7kPdRv@Zw9tLmGs",
    "postgresql://127.0.0.1:1?password=Xq7kPdRv:1@Zw9tLmGs/d",
    "postgresql://?host=127.0.0.1&password=Xq7kPdRv@Zw9tLmGs",
    "postgresql://[::1]:1?sslpassword=Xq7kPdRv@Zw9tLmGs",
]
NUMBERS = [str(number) for number in range(len(MISREAD))]  # no part of a password in `tmp_path`


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home of a lake that streams from another source, and a pipeline file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    file = tmp_path / "p.yaml"
    file.write_text(VALID)
    found = Home(tmp_path / "home")
    found.create()
    found.remember("source_dsn", "postgresql://u:stored1@db.example.org/d")
    plan = load_plan(file).to_json()
    LakeState(external=True, epoch=1, source_id="7/5", plan=plan).save(found)
    return found


@pytest.mark.parametrize("dsn", MISREAD, ids=NUMBERS)
def test_commands_show_no_part_of_a_password(
    dsn: str, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CDCLAKE_SOURCE_DSN", dsn)
    for words in ("up p.yaml", "plan p.yaml --json", "init -o q.yaml", "new shop", "up --json"):
        with pytest.raises(SystemExit) as ended:
            main(words.split())
        shown = "".join(capsys.readouterr())
        assert (ended.value.code, "invalid DSN of the source" in shown) == (2, True), words
        assert "%2F for /" in shown and "unexpected" not in shown
        assert not any(part in shown for part in SECRET)
    files = [file.read_text() for file in home.path.parent.rglob("*") if file.is_file()]
    assert not any(part in text for part in SECRET for text in files)
    assert not [*home.logs.iterdir()]


@pytest.mark.parametrize("dsn", MISREAD, ids=NUMBERS)
def test_doctor_shows_no_part_of_a_password(dsn: str) -> None:
    [found] = doctor.check_database(dsn, None, Owner("local:a1", "a lake"))
    assert (found.name, found.state) == ("source", "failed")
    assert found.detail == "invalid DSN of the source" and "%40 for @" in found.remedy


@pytest.mark.parametrize("dsn", MISREAD, ids=NUMBERS)
def test_a_stored_dsn_is_refused_where_it_is_used(dsn: str) -> None:
    with pytest.raises(InputError, match="invalid DSN"):
        without_password(secured(dsn))


@pytest.mark.parametrize(
    ("dsn", "host", "password"),
    [
        ("postgresql://u:p%40%2Fw@h:5433/d", "h", "p@/w"),
        ("postgres://u:p?w:x@h/d?application_name=a@b", "h", "p?w:x"),
        ("postgres://u:p&user=x?w=y@h/d", "h", "p&user=x?w=y"),
        ("postgresql://u@%40abstract/d?password=p@/w", "@abstract", "p@/w"),
        ("postgresql://h/?user=u&password=p@w", "h", "p@w"),
        ("postgresql://h?user=u&password=p/w@x", "h", "p/w@x"),
        ("postgresql://u@a:1,b:2/d", "a,b", None),
        ("postgresql://[::1]:5432/d%40e", "::1", None),
        ("host=/tmp user=u password=p@/w", "/tmp", "p@/w"),
        ("", None, None),
    ],
)
def test_valid_dsns_are_read_as_by_libpq(dsn: str, host: str | None, password: str | None) -> None:
    parts = dsn_parts(dsn)
    assert (parts.get("host"), parts.get("password")) == (host, password)


def test_plan_refuses_the_options_that_up_refuses(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    LakeState().save(home)
    monkeypatch.setenv("CDCLAKE_SOURCE_DSN", "postgresql://u@a.example.org,b.example.org/d")
    for command in ("plan", "up"):
        with pytest.raises(SystemExit):
            main([command, "p.yaml"])
        assert "the source's DSN has several hosts" in capsys.readouterr().err
