"""The shell of `cdclake sql`, driven by a terminal's input."""

from __future__ import annotations

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from cdclake.cli.sql_shell import LakeCompleter, Shell, is_complete
from cdclake.errors import InputError
from cdclake.iceberg.relation_columns import relation_columns
from tests.unit.verify.lakes import make_plan, make_table

PLAN = make_plan(make_table(table="Orders", name="orders"))
RELATIONS = relation_columns(PLAN)


def completions(text: str) -> list[str]:
    found = LakeCompleter(RELATIONS).get_completions(
        Document(text), CompleteEvent(completion_requested=True)
    )
    return [each.text for each in found]


def typed(keys: str) -> list[str]:
    """Return the statements that the shell runs for these keys; `bad` ones are refused."""
    statements: list[str] = []

    def run(query: str) -> None:
        statements.append(query)
        if "bad" in query:
            raise InputError("refused", "write another")

    with create_pipe_input() as keyboard, create_app_session(keyboard, DummyOutput()):
        keyboard.send_text(keys)
        Shell(PLAN, run).run()
    return statements


def test_relations_have_the_columns_of_queries() -> None:
    assert next(iter(RELATIONS)) == "orders_current"
    assert RELATIONS["orders_current"] == ("id", "v", "big")
    assert {"cdc_op", "v"} <= {*RELATIONS["orders_history"]} & {*RELATIONS["orders_changes"]}
    assert "cdc_deleted" in RELATIONS["orders"] and "reason" in RELATIONS["cdclake_quarantine"]


def test_relations_follow_from_and_join() -> None:
    assert completions("select * from ord") == [
        *("orders_current", "orders_history", "orders", "orders_changes"),
    ]
    assert completions("select 1 from a join cdcl") == ["cdclake_quarantine"]
    assert completions("\\d orders_c") == ["orders_current", "orders_changes"]


def test_columns_are_those_of_the_named_relations() -> None:
    document = Document("select b from orders_current", cursor_position=8)
    found = LakeCompleter(RELATIONS).get_completions(document, CompleteEvent())
    assert "big" in [each.text for each in found]
    assert completions("select * from orders_current where orders_current.") == ["id", "v", "big"]
    assert "cdc_deleted" not in completions("select * from orders_current where cdc_")


def test_statement_ends_with_a_semicolon_and_may_have_lines() -> None:
    assert typed("select 1\n+ 2;\n\\q\n") == ["select 1\n+ 2;"]


def test_refused_statement_does_not_end_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("bad;\n\nselect 2;\n\x04") == ["bad;", "select 2;"]
    assert capsys.readouterr().err == "error: refused\nremedy: write another\n"


def test_commands_list_relations_and_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("\\d\n\\d Orders_current\n\\d nothing\n\\?\n\\q\n") == []
    shown = capsys.readouterr()
    assert "orders_current            3\n" in shown.out
    assert "\nid\nv\nbig\n" in shown.out and "leave the shell" in shown.out
    assert "no relation 'nothing'" in shown.err


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), ("\\d", True), ("select 1; ", True), ("select 1", False)]
)
def test_complete_input(text: str, expected: bool) -> None:
    assert is_complete(text) is expected
