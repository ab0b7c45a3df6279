"""Sizes of a deployment: the defaults that `aws: {size: ...}` sets; single values override them.

`trial` is for a first look: one row of small machines, unprotected. `small` is for development
and little data, `standard` for production, `large` for high rates. `cdclake cost` prints what each
costs with a file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from cdclake.config.document import Document, merge

Size = Literal["trial", "small", "standard", "large"]
DEFAULT_SIZE: Size = "standard"

_SIZES: dict[str, dict[str, Any]] = {
    "trial": {
        "protect": False,
        "log_days": 7,
        "network": {"create": {"zones": ["a", "b"], "endpoint_zones": 1}},
        "source": {
            "create": {
                "instance": "db.t4g.micro",
                "storage_gb": 20,
                "max_storage_gb": 50,
                "slot_wal_gb": 5,
                "multi_az": False,
                "backup_days": 1,
            }
        },
        "kafka": {"create": {"instance": "kafka.t3.small", "volume_gb": 20}},
        "jobs": {"stream": {"worker": "G.025X", "workers": 2}, "batch": {"workers": 2}},
    },
    "small": {
        "log_days": 14,
        "network": {"create": {"zones": ["a", "b"], "endpoint_zones": 1}},
        "source": {
            "create": {
                "instance": "db.t4g.small",
                "storage_gb": 50,
                "max_storage_gb": 200,
                "slot_wal_gb": 10,
                "multi_az": False,
                "backup_days": 7,
            }
        },
        "kafka": {"create": {"volume_gb": 50}},
        "jobs": {"stream": {"worker": "G.025X", "workers": 2}, "batch": {"workers": 2}},
    },
    "standard": {},
    "large": {
        "source": {
            "create": {
                "instance": "db.m7g.xlarge",
                "storage_gb": 500,
                "max_storage_gb": 2000,
                "slot_wal_gb": 100,
            }
        },
        "kafka": {"create": {"instance": "kafka.m7g.xlarge", "volume_gb": 500}},
        "connect": {"mcus": 2},
        "jobs": {"stream": {"workers": 10}, "batch": {"worker": "G.2X", "workers": 5}},
    },
}
# The parts that are either created, with sizes, or exist.
_PARTS = ("network", "source", "kafka")


def sized(document: Document) -> Document:
    """Return the document with the defaults of its size under the values that it declares."""
    aws = document.get("aws")
    size = document.get("aws", "size")
    if not isinstance(aws, dict) or not isinstance(size, str) or size not in _SIZES:
        return document
    defaults = {
        part: values
        for part, values in _SIZES[size].items()
        if part not in _PARTS or not _exists(aws.get(part))
    }
    return replace(document, values={**document.values, "aws": merge(defaults, aws)})


def _exists(part: Any) -> bool:
    return isinstance(part, dict) and "existing" in part
