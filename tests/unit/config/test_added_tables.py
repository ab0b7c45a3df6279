"""Tables added to a pipeline file: everything else stays as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.added_tables import add_tables, with_tables
from cdclake.config.resolve import load_plan
from cdclake.errors import InputError

ENTRY = {"public.carts": ["  public.carts:", "    key: [id]", "    columns:", "      id: bigint"]}
LINES = "  public.carts:\n    key: [id]\n    columns:\n      id: bigint\n"
FILE = """\
## head
version: 1
name: shop   # kept
source: {database: shop}
tables:
  public.orders:
    key: [id]
    columns:   # those that flow
      id: bigint
  public.lines: {key: [id], columns: {id: bigint}}  # in one line

## a remark on the policies
policies: {new_tables: "public.*"}
"""


def test_tables_follow_the_last_one() -> None:
    last = "  public.lines: {key: [id], columns: {id: bigint}}  # in one line\n"
    assert with_tables(FILE, ENTRY) == FILE.replace(last, last + LINES)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n## the end", "\n# public.carts:"])
@pytest.mark.parametrize(
    "last",
    [
        "    public.orders: {key: [id], columns: {id: bigint}}",
        "    public.orders:\n        key: [id]\n        columns: {id: bigint,\n          n: int}",
        "    public.orders:\n        key: [id]\n        columns:\n            id: bigint",
        "    public.orders:\n        columns: {id: bigint, at: timestamptz}\n        key: [id]\n"
        "        capture:\n            poll:\n                by: at\n                query: |-\n"
        "                    SELECT id, at\n                    FROM a.b",
    ],
)
def test_every_block_of_tables_is_extended(last: str, end: str, mark: str, newline: str) -> None:
    head = "version: 1\nname: shop\nsource: {database: shop}\ntables:\n"
    text = mark + f"{head}{last}{end}".replace("\n", newline)
    added = newline + "".join(f"  {line}{newline}" for line in LINES.splitlines()).rstrip()
    assert with_tables(text, ENTRY) == text.replace(
        last.replace("\n", newline), last.replace("\n", newline) + added
    )


@pytest.mark.parametrize(
    "tables",
    [
        "{public.orders: {key: [id], columns: {id: bigint}}}",
        "\n  public.carts: {key: [id], columns: {id: bigint}}",
    ],
)
def test_tables_that_cannot_be_extended_are_refused(tables: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"version: 1\nname: shop\nsource: {{database: shop}}\ntables: {tables}\n")
    before = file.read_text()
    with pytest.raises(InputError, match=r"cannot add public\.carts"):
        add_tables(file, ENTRY)
    assert file.read_text() == before


def test_a_table_that_the_file_cannot_have_leaves_it_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    lines = [line.replace("carts", "Orders") for line in ENTRY["public.carts"]]
    with pytest.raises(InputError, match=r"with public\.Orders would be invalid"):
        add_tables(file, {"public.Orders": lines})
    assert file.read_text() == FILE


def test_added_tables_are_in_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    file.chmod(0o640)
    add_tables(file, ENTRY)
    assert [t.source for t in load_plan(file).tables][-1] == "public.carts"
    assert (file.stat().st_mode & 0o777, list(tmp_path.iterdir())) == (0o640, [file])
