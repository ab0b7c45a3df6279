"""SCRAM verifiers, which keep clear-text passwords out of statements and logs."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode

ITERATIONS = 4096


def scram_verifier(password: str, salt: bytes) -> str:
    """Return the verifier to use in `CREATE ROLE ... PASSWORD` (RFC 5802, RFC 7677).

    Only ASCII is allowed: SASLprep does not change it, and all these passwords are generated.
    """
    if not (password.isascii() and password.isprintable() and password):
        raise ValueError("the role's password must consist of printable ASCII characters")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    shown = [b64encode(part).decode() for part in (salt, stored_key, server_key)]
    return f"SCRAM-SHA-256${ITERATIONS}:{shown[0]}${shown[1]}:{shown[2]}"
