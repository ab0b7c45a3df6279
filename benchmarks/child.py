"""`python -m benchmarks.child MODULE QUESTION ANSWER`: its `take` in a process of its own.

The question is a JSON file with the arguments of `take`; what `take` returns goes to the answer.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from cdclake.interrupts import ending_in_order


def main() -> int:
    module, question, answer = sys.argv[1:]
    take = import_module(module).take
    with ending_in_order():
        Path(answer).write_text(json.dumps(take(**json.loads(Path(question).read_text()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
