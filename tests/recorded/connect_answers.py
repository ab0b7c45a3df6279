"""What workers of Kafka Connect answered to the connector of `doctor --probe-connector`.

`python -m tests.local.connect_worker` records connect_answers.json: by case the telling lines of
the worker's log, and the reason with which it refused the connector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.recorded.recording import FOLDER

FILE = FOLDER / "connect_answers.json"


def recorded_answers() -> dict[str, str]:
    """What the probe reads, by case."""
    return {case: _text(answer) for case, answer in json.loads(FILE.read_text()).items()}


def _text(answer: Mapping[str, Any]) -> str:
    return "\n".join([*answer["log"], answer["reason"]])
