"""Commands that take time show a step: here until they find neither lake, source nor account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from cdclake.activity import Step, step
from cdclake.cli import page_answers
from cdclake.cli.main import main
from cdclake.errors import InputError
from cdclake.local.components import installed
from cdclake.local.demo import workspace
from cdclake.local.lake.topic_records import TopicRecord
from cdclake.local.trace.kafka_events import _counted
from cdclake.ui import page_server

FILE = """\
version: 1
name: shop
source: {database: shop}
tables:
  public.orders: {key: [id], columns: {id: bigint}}
environments: {dev: {}}
aws: {region: eu-west-1}
"""
NO_SOURCE = "postgresql://u:p@127.0.0.1:1/d"
DEPLOYED = ("--target", "aws", "--file", "shop.yaml", "--environment", "dev")
COMMANDS = [
    (("trace", "orders", "1"), "read what is known of the row"),
    (("trace", "orders", "1", *DEPLOYED), "read what is known of the row"),
    (("peek", "orders"), "read the topic"),
    (("quarantine",), "read the quarantine"),
    (("quarantine", *DEPLOYED), "read the quarantine"),
    (("snapshots", "orders"), "read the snapshots"),
    (("snapshots", "orders", *DEPLOYED), "read the snapshots"),
    (("plan", "shop.yaml"), "find what the file changes"),
    (("plan", "shop.yaml", "--environment", "dev"), "find what the file changes"),
    (("init", "-o", "new.yaml", "--from-db", NO_SOURCE), "read the database's tables"),
    (("init", "--update", "shop.yaml", "--from-db", NO_SOURCE), "read the database's new columns"),
    (("new", "shop", "--from-db", NO_SOURCE), "read the database's tables"),
]


@pytest.mark.parametrize(("words", "expected"), COMMANDS)
def test_a_command_shows_its_step(
    words: tuple[str, ...], expected: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(FILE)
    with pytest.raises(SystemExit):
        main([*words, "--json"])
    lines = [json.loads(line)["progress"] for line in capsys.readouterr().err.splitlines()]
    assert [(line["step"], line["state"]) for line in lines] == [
        (expected, "running"),
        (expected, "ended"),
    ]


def test_the_search_in_kafka_shows_how_many_records_it_has_read() -> None:
    shown = Step("search")
    records = (TopicRecord(0, offset, 0, None, None) for offset in range(2_500))
    assert [r.offset for r in _counted(records, shown, total=2_500)] == list(range(2_500))
    assert shown.advance is not None
    assert (shown.advance.done, shown.advance.total, shown.advance.unit) == (2000, 2500, "records")


def test_the_page_shows_no_steps_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Server:
        server_port = 1

        def serve_forever(self) -> None:
            with step("an answer of the page"):
                pass

    monkeypatch.setattr(page_answers, "local_answers", lambda: {"overview": lambda _: {}})
    monkeypatch.setattr(page_server, "page_server", lambda *_: nullcontext(Server()))
    with pytest.raises(SystemExit):
        main(["ui", "--json"])
    assert capsys.readouterr().err == ""


def test_the_demo_shows_that_jars_are_fetched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetch(folder: Path) -> Path:
        with step(f"fetch the jars of {folder.name}"):
            return Path()  # a folder

    @contextmanager
    def ending(base: Path, *, keep: bool) -> Iterator[None]:
        raise InputError("as far as this", "end")
        yield

    monkeypatch.setattr(installed, "ensure_fetched", fetch)
    monkeypatch.setattr(workspace, "temporary_home", ending)
    with pytest.raises(SystemExit):
        main(["demo", "--json"])
    shown = [json.loads(line)["progress"] for line in capsys.readouterr().err.splitlines()]
    ended = [line["step"] for line in shown if line["state"] == "ended"]
    profiles = ("connect", "debezium", "kafka", "postgres-dist", "secrets", "spark")
    assert ended == [f"fetch the jars of {profile}" for profile in profiles]
