"""What a job says as it runs: its own words, on standard output, where Glue keeps them."""

from __future__ import annotations

import logging
import sys

_CHATTY = ("py4j", "botocore")


def log_to_stdout() -> None:
    """Have everything from INFO on written there; of what others' libraries say, warnings."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
