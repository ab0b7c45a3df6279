"""A password as PostgreSQL stores it, so that its clear text enters no statement and no log."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode

ITERATIONS = 4096


def scram_verifier(password: str, salt: bytes) -> str:
    """What `CREATE ROLE ... PASSWORD` takes in place of the clear text (RFC 5802, RFC 7677).

    ASCII only: there SASLprep changes nothing, and the passwords are made by us.
    """
    if not (password.isascii() and password.isprintable() and password):
        raise ValueError("the role's password must be of printable ASCII characters")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    shown = [b64encode(part).decode() for part in (salt, stored_key, server_key)]
    return f"SCRAM-SHA-256${ITERATIONS}:{shown[0]}${shown[1]}:{shown[2]}"
