"""Ways to break the search for stored values, so that it would prove what is not true."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CONTENT_TESTS = ("tests/unit/erasure/test_content_search.py",)
_OBJECT_TESTS = ("tests/unit/erasure/test_stored_objects.py",)
_PARQUET = "glue_jobs/erasure/parquet_search.py"
_CONTENT = "glue_jobs/erasure/content_search.py"
_VALUES = "glue_jobs/erasure/sought_values.py"
_OBJECTS = "glue_jobs/erasure/stored_objects.py"


def _content(name: str, file: str, old: str, new: str) -> Mutation:
    return Mutation(name, _CONTENT_TESTS, ((file, old, new),))


SEARCH = (
    _content("values are not decoded", _PARQUET, "    yield from _values(content, sought)\n", ""),
    _content(
        "pages are not decompressed",
        _PARQUET,
        "found = sought.in_bytes(page) | _in_statistics",
        "found = _in_statistics",
    ),
    _content("column indexes are not read", _PARQUET, "if _INDEX_OFFSET in chunk:", "if False:"),
    _content(
        "statistics are not read",
        _PARQUET,
        'yield f"statistics of column {name}", found',
        "pass",
    ),
    _content(
        "unused numbers of a dictionary are not read",
        _PARQUET,
        "if part == _DICTIONARY and sought.is_whole(name):",
        "if False:",
    ),
    _content(
        "bounds of manifests are not read",
        _CONTENT,
        "if key in _BOUNDS_BY_ID and inner:",
        "if False:",
    ),
    _content(
        "bounds of manifest lists are not read",
        _CONTENT,
        "elif key in _SUMMARY_BOUNDS and inner is not None:",
        "elif False:",
    ),
    _content(
        "a bound that is cut is another value",
        _VALUES,
        "found = self.in_value(name, bound) | self._cut_to(bound)",
        "found = self.in_value(name, bound)",
    ),
    _content(
        "a cut maximum is not decreased",
        _VALUES,
        "for start in (bound, *_lowered(bound))",
        "for start in (bound,)",
    ),
    _content("numbers in bounds are text", _VALUES, "len(bound) in (4, 8)", "False"),
    _content("numbers count in every table", _VALUES, "in_table = False", "in_table = True"),
    _content("Base64 is text", _VALUES, " | self.in_bytes(_decoded(text))", ""),
    _content(
        "compressed blobs of Puffin are searched as they are",
        _CONTENT,
        "plain = stored if codec is None else _stream(stored, codec)",
        "plain = stored",
    ),
    _content(
        "a file that cannot be read is skipped",
        _CONTENT,
        "raise _unreadable(name, error) from error",
        "return",
    ),
    _content("names of objects are not searched", _CONTENT, 'yield "name", found', "pass"),
    Mutation(
        "delete markers are not listed",
        _OBJECT_TESTS,
        ((_OBJECTS, 'for kind in ("Versions", "DeleteMarkers"):', 'for kind in ("Versions",):'),),
    ),
    Mutation(
        "every version is read as the newest one",
        _OBJECT_TESTS,
        ((_OBJECTS, '{} if self.version == _UNVERSIONED else {"VersionId": self.version}', "{}"),),
    ),
)
