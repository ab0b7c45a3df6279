"""Runs one jq query over records in its own process: a query may not end, or crash libjq.

Run by its path, without environment and arguments. Standard input is a JSON object with the `query`
and the `records` as text; standard output is one with the `error` of the compiler, or with the
`results`: for each record the values that the query yields, or its error as text.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import jq

_MAX_MEMORY_BYTES = 1 << 30  # a query may ask for all available memory


def main() -> None:
    """Run the query from standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    question = json.load(sys.stdin)
    try:
        program = jq.compile(question["query"])
    except ValueError as error:
        json.dump({"error": str(error)}, sys.stdout)
        return
    json.dump({"results": [_yield(program, text) for text in question["records"]]}, sys.stdout)


def _yield(program: Any, text: str) -> list[Any] | str:
    try:
        return list(program.input(text=text))
    except ValueError as error:
        return str(error)


if __name__ == "__main__":
    main()
