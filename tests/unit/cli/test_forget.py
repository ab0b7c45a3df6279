"""`forget` before it looks for a lake: its keys, and the question."""

from __future__ import annotations

from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import pytest

from cdclake.cli import forget
from cdclake.errors import InputError


def test_keys_of_a_file_are_divided_by_tabs(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("1\tfirst key\n\n2\tb\n")
    assert forget._listed(file) == [["1", "first key"], ["2", "b"]]
    file.write_text("\ufeffa\u2028b\tc\r\nd\r\n", "utf-8", newline="")
    assert forget._listed(file) == [["a\u2028b", "c"], ["d"]]
    file.write_bytes(b"a\rb\nc\n")
    assert forget._listed(file) == [["a\rb"], ["c"]]  # not the keys a and b
    file.write_bytes(b"a\rb\r\nc\r\td")
    assert forget._listed(file) == [["a\rb"], ["c\r", "d"]]
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot read"):
        forget._listed(file)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"ada\r\nbob\r\neve\n", 1),  # a line was appended
        (b"eve\n\nada\r\nbob\r\n", 3),
        (b"ada\r\nbob\r", 2),
        (b"ada\r\r\nbob\r\r\n", 1),
        (b"ada\rbob\r", 1),
        (b"ada\rbob", 1),
    ],
)
def test_ambiguous_line_ends_are_refused(content: bytes, line: int, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match=rf"keys\.txt end differently.*: line {line};"):
        forget._listed(file)


def test_an_empty_file_has_no_key(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("\n")
    with pytest.raises(InputError, match="no key"):
        forget.forget("orders", None, keys=file, yes=True)


@pytest.mark.parametrize(
    ("keys", "answer", "is_right"),
    [(["4 2"], "4 2", True), (["4 2"], "42", False), (["1", "2"], "orders", True),
     (["1", "2"], "1", False)],
)  # fmt: skip
def test_only_the_typed_key_or_table_erases(
    keys: list[str],
    answer: str,
    is_right: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(forget, "is_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", StringIO(f"{answer}\n"))
    outcome = nullcontext() if is_right else pytest.raises(InputError, match="nothing was erased")
    with outcome:
        forget._confirm("orders", keys, yes=False)
    shown = capsys.readouterr()
    assert shown.out == ""  # with --json it has the answer alone
    assert "of orders from the lake for good" in shown.err


def test_without_a_terminal_only_yes_erases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr(forget, "is_terminal", lambda: False)
    with pytest.raises(InputError, match="must be confirmed"):
        forget._confirm("orders", ["1"], yes=False)
    forget._confirm("orders", ["1"], yes=True)
