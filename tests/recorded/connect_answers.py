"""Recorded answers of Kafka Connect to the connector of `doctor --probe-connector`.

`python -m tests.local.connect_worker` records connect_answers.json: by case the relevant lines
of the worker's log, and the reason with which it refused the connector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.recorded.recording import FOLDER

FILE = FOLDER / "connect_answers.json"


def recorded_answers() -> dict[str, str]:
    """Return the text that the probe reads, by case."""
    return {case: _text(answer) for case, answer in json.loads(FILE.read_text()).items()}


def _text(answer: Mapping[str, Any]) -> str:
    return "\n".join([*answer["log"], answer["reason"]])
