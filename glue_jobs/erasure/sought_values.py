"""Values that a search looks for, and where each of them counts as found.

Texts are searched everywhere. A number or a short text would be found everywhere, whatever was
erased: it counts only as the whole value of its column, in files of its table.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from urllib.parse import unquote, unquote_plus

from cdclake.jobs.erasure.text_index import TextIndex
from cdclake.jobs.iceberg.file_metrics import SURROGATES

MIN_TEXT_CHARACTERS = 6  # of a text that is searched everywhere
CUT_CHARACTERS = 16  # Iceberg cuts bounds of texts there; Parquet's column indexes are longer
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
_NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SoughtValue:
    """Value of a column, as text; the name is what a report shows instead of the value."""

    column: str
    text: str
    is_in_bounds: bool = True  # False: a value that is kept begins alike, so a cut bound may be its

    @property
    def is_anywhere(self) -> bool:
        """Check whether the text is telling enough to be searched in every column and file."""
        return len(self.text) >= MIN_TEXT_CHARACTERS and _NUMBER.fullmatch(self.text) is None


@dataclass(slots=True)
class SoughtValues:
    """All values of one search, ready to be matched."""

    values: Sequence[SoughtValue]
    in_table: bool = True  # whether numbers and short texts count, too
    in_paths: bool = False  # whether texts are names of objects or folders
    _whole: dict[str, set[str]] = field(default_factory=dict)  # column -> whole values
    _texts: TextIndex = field(init=False)  # bytes of a text -> its column
    _in_bounds: TextIndex = field(init=False)
    _elsewhere: SoughtValues | None = None

    def __post_init__(self) -> None:
        for value in self.values:
            self._whole.setdefault(value.column, set()).add(value.text)
        anywhere = [value for value in self.values if value.is_anywhere]
        self._texts = TextIndex(_columns_by_form(anywhere))
        self._in_bounds = TextIndex(_columns_by_form(v for v in anywhere if v.is_in_bounds))

    def elsewhere(self) -> SoughtValues:
        """Return the search for files that are not those of the values' table."""
        if not self.in_table:
            return self
        if self._elsewhere is None:
            self._elsewhere = copy(self)
            self._elsewhere.in_table = False
        return self._elsewhere

    def of_paths(self) -> SoughtValues:
        """Return the search for files whose texts are paths, as those of Hudi's timeline."""
        found = copy(self)
        found.in_paths, found._elsewhere = True, None
        return found

    def in_bytes(self, content: bytes) -> set[str]:
        """Return the columns whose texts are in these bytes."""
        return self._texts.names_in(content)

    def places_in(self, content: bytes) -> list[tuple[int, int]]:
        """Return start and end of each text in these bytes."""
        return list(self._texts.places(content))

    def in_value(self, name: str, value: object) -> set[str]:
        """Return the columns whose values are in a decoded value of the column or key `name`."""
        if value is None or isinstance(value, bool):
            return set()
        if isinstance(value, Mapping):
            pairs = ((str(key), each) for key, each in value.items())
            return set().union(*(self.in_value(*pair) | self.in_key(pair[0]) for pair in pairs))
        if isinstance(value, list | tuple):
            return set().union(*(self.in_value(name, each) for each in value))
        if isinstance(value, bytes | bytearray | memoryview):
            content = bytes(value)
            found = self.in_bytes(content)
            return found | self._whole_in(name, content.decode("utf-8", "replace"))
        text = str(value)
        return self.in_key(text) | self._whole_in(name, text) | self.in_bytes(_decoded(text))

    def in_key(self, text: str) -> set[str]:
        """Return the columns whose texts are in this text, which may be a path."""
        return self.in_path(text) if self.in_paths else self.in_text(text)

    def in_path(self, path: str) -> set[str]:
        """Return the columns whose values are in the name of an object.

        Folders of partitions are named `column=value`. Hudi encodes characters of the value by `%`;
        Iceberg also writes a space as `+`.
        """
        found: set[str] = set()
        for read in (str, unquote, unquote_plus):
            found |= self.in_text(read(path))
            for folder in path.split("/"):
                column, _, value = folder.partition("=")
                found |= self._whole_in(read(column), read(value))
        return found

    def in_text(self, text: str) -> set[str]:
        """Return the columns whose texts are in this text."""
        return self.in_bytes(text.encode("utf-8", "surrogatepass"))

    def in_bound(self, name: str, bound: bytes) -> set[str]:
        """Return the columns whose values may be a minimum or maximum of the column `name`.

        A bound may be cut; the last character of a cut maximum is the next one.
        """
        found = self.in_value(name, bound) | self._cut_to(bound)
        if self.in_table and len(bound) in (4, 8):
            number = int.from_bytes(bound, "little", signed=True)
            found |= self._whole_in(name, str(number))
        return found

    def is_whole(self, name: str) -> bool:
        """Check whether whole values of this column count."""
        return self.in_table and name in self._whole

    def _whole_in(self, name: str, text: str) -> set[str]:
        is_found = self.is_whole(name) and text in self._whole[name]
        return {name} if is_found else set()

    def _cut_to(self, bound: bytes) -> set[str]:
        if len(bound) < CUT_CHARACTERS:
            return set()
        return {
            self._in_bounds.name(form)
            for start in (bound, *_lowered(bound))
            for form in self._in_bounds.beginning_with(start)
        }


def _lowered(bound: bytes) -> Iterator[bytes]:
    """Yield the cut texts whose maximum may be this bound.

    Iceberg adds one to the last code point. Parquet adds one to the last byte or, if the bytes are
    UTF-8 with no greater one, to the byte before it (`BinaryTruncator` of parquet-column).
    """
    last = bound.decode("utf-8", "replace")[-1:]
    encoded = last.encode()
    for at in range(max(1, min(len(encoded), len(bound)))):
        index = len(bound) - 1 - at
        if bound[index]:
            yield bound[:index] + bytes([bound[index] - 1]) + bound[index + 1 :]
    before = ord(last) - 1
    if before in SURROGATES:
        before = SURROGATES.start - 1
    if before >= 0 and bound.endswith(encoded):
        yield bound.removesuffix(encoded) + chr(before).encode()


def _columns_by_form(values: Iterable[SoughtValue]) -> dict[bytes, str]:
    columns: dict[bytes, str] = {}
    for value in values:
        for form in _forms(value.text):
            columns.setdefault(form, value.column)
    return columns


def _decoded(text: str) -> bytes:
    """Return the bytes of Base64, as Firehose and Kinesis keep records; empty for other texts."""
    if len(text) % 4 or _BASE64.fullmatch(text) is None:
        return b""
    return base64.b64decode(text)


def _forms(text: str) -> Iterator[bytes]:
    """Yield the text in UTF-8, and as JSON escapes it, also within a text of JSON."""
    forms = {text}
    for _ in range(2):
        for form in list(forms):
            forms |= {json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]}
    for form in forms:
        yield form.encode("utf-8", "surrogatepass")
