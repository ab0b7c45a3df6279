"""`forget` before it looks for a lake: its keys, and the question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from cdclake.cli import forget
from cdclake.errors import InputError


def test_keys_of_a_file_are_divided_by_tabs(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("1\tfirst key\n\n2\tb\n")
    assert forget._listed(file) == [["1", "first key"], ["2", "b"]]
    file.write_text("\ufeffa\u2028b\tc\r\nd\r\n", "utf-8", newline="")
    assert forget._listed(file) == [["a\u2028b", "c"], ["d"]]
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot read"):
        forget._listed(file)


def test_an_empty_file_has_no_key(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("\n")
    with pytest.raises(InputError, match="no key"):
        forget.forget("orders", None, keys=file, yes=True)


def answering(text: str) -> Callable[..., str]:
    return lambda *_: text


@pytest.mark.parametrize(
    ("keys", "answer", "is_right"),
    [(["4 2"], "4 2", True), (["4 2"], "42", False), (["1", "2"], "orders", True),
     (["1", "2"], "1", False)],
)  # fmt: skip
def test_only_the_typed_key_or_table_erases(
    keys: list[str], answer: str, is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "is_terminal", lambda: True)
    monkeypatch.setattr(typer, "prompt", answering(answer))
    if is_right:
        forget._confirm("orders", keys, yes=False)
        return
    with pytest.raises(InputError, match="nothing was erased"):
        forget._confirm("orders", keys, yes=False)


def test_without_a_terminal_only_yes_erases(monkeypatch: pytest.MonkeyPatch) -> None:
    def prompt(*_: Any) -> str:
        raise AssertionError

    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(forget, "is_terminal", lambda: False)
    with pytest.raises(InputError, match="nothing can answer"):
        forget._confirm("orders", ["1"], yes=False)
    forget._confirm("orders", ["1"], yes=True)
