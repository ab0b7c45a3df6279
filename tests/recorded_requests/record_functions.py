"""Record what the functions call in their tests, against moto.

Start it as `python -m tests.recorded_requests.record_functions`. The result, by function the calls
as botocore has them, is written to functions.json in this folder.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.recorded_requests.functions import MADE

CALLED = Path(__file__).with_name("functions.json")
_USES = re.compile("load_function|redriving|PutRedriveService")
_TESTS = Path(__file__).resolve().parents[1] / "unit"


def called() -> dict[str, set[str]]:
    """The calls that are committed, by function."""
    return {function: {*calls} for function, calls in json.loads(CALLED.read_text()).items()}


def main() -> int:
    """Run the tests of the functions in this process, and write the file."""
    files = [str(file) for file in _TESTS.glob("*/test_*.py") if _USES.search(file.read_text())]
    if status := pytest.main(["-q", "-n", "0", "-p", "no:randomly", *sorted(files)]):
        return int(status)
    found = {of: sorted(call for who, call in MADE if who == of) for of in {who for who, _ in MADE}}
    CALLED.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
