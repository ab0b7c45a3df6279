"""PostgreSQL's text of an array, taken apart."""

from __future__ import annotations

import re
from typing import Any

_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)|([{}])|,', re.DOTALL)


def parse_array(text: str) -> list[Any]:
    """The items as text, None for NULL, without bounds; of several dimensions lists in a list.

    >>> parse_array('{a,"b,\\\\"c",NULL,"NULL"}'), parse_array("{}"), parse_array("{{1,2},{3,4}}")
    (['a', 'b,"c', None, 'NULL'], [], [['1', '2'], ['3', '4']])
    """
    open_lists: list[list[Any]] = [[]]
    for match in _ITEM.finditer(text[text.index("{") :]):
        quoted, plain, brace = match.groups()
        if brace == "{":
            open_lists.append([])
        elif brace == "}":
            whole = open_lists.pop()
            open_lists[-1].append(whole)
        elif quoted is not None:
            open_lists[-1].append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        elif plain is not None:
            open_lists[-1].append(None if plain == "NULL" else plain)
    (array,) = open_lists[0]
    return list(array)
