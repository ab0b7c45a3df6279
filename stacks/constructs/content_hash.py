"""Hash of what a resource is made of."""

from __future__ import annotations

import hashlib
import json

from aws_cdk import Stack
from constructs import Construct

_DIGITS = 12


def content_hash(scope: Construct, content: object) -> str:
    """Return a hash of the content; values known only at deployment count as their references."""
    text = json.dumps(Stack.of(scope).resolve(content), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
