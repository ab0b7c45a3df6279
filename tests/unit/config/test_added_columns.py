"""Columns added to a pipeline file: everything else stays as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.added_columns import add_columns, with_columns
from cdclake.config.resolve import load_plan
from cdclake.errors import InputError

ORDERS = ("public", "orders")
BLOCK = """\
## head
version: 1
name: shop   # kept
source: {database: shop}
tables:
  public.orders:
    key: [id]
    columns:   # those that flow
      id: bigint
      email: {type: text, mask: hash}  # never in clear

      ## a remark on the next table
  "public.line items":
    key: [id]
    columns: {id: bigint, "a b": 'numeric(6,2)'}  # flow
policies: {new_columns: declare}
"""


def test_a_block_gets_lines_after_its_last_column() -> None:
    changed = with_columns(BLOCK, {ORDERS: {"note": "text", "Total": "numeric(12,2)", "no": "int"}})
    email = "      email: {type: text, mask: hash}  # never in clear\n"
    new = "      note: text\n      Total: numeric(12,2)\n      'no': int\n"
    assert changed == BLOCK.replace(email, email + new)


def test_a_flow_mapping_gets_quoted_columns() -> None:
    changed = with_columns(BLOCK, {("public", "line items"): {"price": "numeric(12,2)"}})
    assert changed == BLOCK.replace("'numeric(6,2)'}", "'numeric(6,2)', price: 'numeric(12,2)'}")


@pytest.mark.parametrize(
    "columns",
    [
        "\n      id: bigint",
        "\n      id:\n        type: bigint\n      email:\n        type: text\n        mask: hash",
        "\n      id: bigint\n      email: {type: text,\n        mask: hash}  # two lines",
        ' {\n      id: bigint,  # a\n      "email": "text",  # b\n    }',
    ],
)
@pytest.mark.parametrize("end", ["", "\n", "\n\n# the end"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_way_to_write_columns_is_extended(columns: str, end: str, newline: str) -> None:
    head = "version: 1\nname: shop\nsource: {database: shop}\ntables:\n"
    text = f"{head}  public.orders:\n    key: [id]\n    columns:{columns}{end}"
    text = "\ufeff" + text.replace("\n", newline)
    changed = with_columns(text, {ORDERS: {"note": "varchar(10)"}})
    assert changed is not None
    kept = iter(changed)
    assert all(character in kept for character in text)
    assert changed.count("\r\n") == (changed.count("\n") if newline == "\r\n" else 0)


def test_a_shared_mapping_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(
        "version: 1\nname: shop\nsource: {database: shop}\ntables:\n"
        "  public.a: {key: [id], columns: &c {id: bigint}}\n"
        "  public.b: {key: [id], columns: *c}\n"
    )
    before = file.read_bytes()
    with pytest.raises(InputError, match="an alias") as error:
        add_columns(file, {("public", "b"): {"note": "text"}})
    assert "`note: text` to public.b" in error.value.remedy
    assert file.read_bytes() == before


def test_a_column_that_the_file_cannot_have_leaves_it_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BLOCK)
    before = file.read_bytes()
    with pytest.raises(InputError, match="would be invalid"):
        add_columns(file, {ORDERS: {"Email": "text"}})  # the name in the lake is taken
    assert file.read_bytes() == before


def test_the_file_is_replaced_whole_with_its_mode_and_its_link(tmp_path: Path) -> None:
    file, link = tmp_path / "shop.yaml", tmp_path / "link.yaml"
    file.write_text(BLOCK)
    file.chmod(0o640)
    link.symlink_to(file)
    add_columns(link, {ORDERS: {"note": "text"}})
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o640
    plan = load_plan(file)
    assert plan.new_columns == "declare"
    assert [(c.source, c.type) for c in plan.table("orders").columns][-1] == ("note", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "shop.yaml"]
