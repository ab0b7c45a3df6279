"""Edits of a pipeline file as text, at the places of its YAML nodes: the rest stays as written."""

from __future__ import annotations

import shutil
from pathlib import Path

from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document
from cdclake.errors import InputError

BOM = "\ufeff"


def value_of(node: Node | None, name: str) -> Node | None:
    """Return the value under the key of a mapping; None if there is none."""
    pairs = node.value if isinstance(node, MappingNode) else ()
    return next((value for key, value in pairs if key.value == name), None)


def end_of(text: str, node: Node) -> int:
    """Return the index after the node's last character; a block's own end is after comments."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return end_of(text, last[1] if isinstance(last, tuple) else last)
    end = int(node.end_mark.index)
    is_block = isinstance(node, ScalarNode) and node.style in ("|", ">")
    return len(text[:end].rstrip()) if is_block else end


def end_of_line(text: str, index: int) -> int:
    """Return the index where the line of `index` ends, before its line break."""
    end = text.find("\n", index)
    end = len(text) if end < 0 else end
    return end - (text[end - 1 : end] == "\r")


def newline_of(text: str) -> str:
    """Return the line break that the text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def replace_valid(file: Path, text: str, added: str, otherwise: str) -> None:
    """Replace the text of a pipeline file that has `added` now, if it is valid.

    Raises:
        InputError: with the file unchanged
    """
    if problems := find_problems(parse_document(text.removeprefix(BOM))):
        raise InputError(
            f"{file} with {added} would be invalid: {problems[0].message}", problems[0].remedy
        )
    replace_text(file, text, otherwise)


def replace_text(file: Path, text: str, otherwise: str) -> None:
    """Replace the file's text in one step; `otherwise` is what to do if that is not possible.

    Raises:
        InputError: with the file unchanged
    """
    place = file.resolve()
    written = place.with_name(f".{place.name}.new")
    try:
        written.write_bytes(text.encode("utf-8"))
        shutil.copymode(place, written)
        written.replace(place)
    except OSError as error:
        written.unlink(missing_ok=True)
        raise InputError(
            f"cannot write {file}: {error.strerror}",
            f"check its folder and your permissions, or {otherwise}",
        ) from None
