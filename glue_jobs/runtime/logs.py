"""Logging of a job: standard output, which Glue stores."""

from __future__ import annotations

import logging
import sys

_CHATTY = ("py4j", "botocore")


def log_to_stdout() -> None:
    """Log to standard output from INFO on; from chatty libraries only warnings."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
