"""SQL expressions of masked values in PostgreSQL, as `MaskConverter` (java/) masks them.

`{x}` is the column.
"""

from __future__ import annotations

import re

from cdclake.masks import REDACTED, MaskKind
from cdclake.postgres.quoting import literal

SALT_SETTING = "cdclake.mask_salt"  # a session setting, so that no statement contains the salt

# Not date_trunc: a timestamp holds fewer years than a date.
# PostgreSQL's dates begin on 24 November 4714 BC; the first day of that month is none.
_FIRST_OF_MONTH = (
    "CASE WHEN {x} < '4714-12-01 BC' THEN '-infinity'"
    " WHEN isfinite({x}) THEN {x} - (extract(day FROM {x})::int - 1) ELSE {x} END"
)
_BLOCK_BYTES = 64  # of SHA-256
_INNER_BYTE, _OUTER_BYTE = 0x36, 0x5C


def salt_option(salt: str) -> str:
    r"""Return the part of libpq's `options` that sets the salt for a connection.

    A server may log the parameters of a statement, but never a startup packet.

    >>> salt_option("a b")
    '-c cdclake.mask_salt=a\\ b'
    """
    escaped = re.sub(r"([\\\s])", r"\\\1", salt, flags=re.ASCII)
    return f"-c {SALT_SETTING}={escaped}"


def masked(kind: MaskKind, form: str) -> str:
    """Return the masked value; `form` is the expression of the clear one, which has its type."""
    if kind == "null":
        return f"CASE WHEN false THEN {form} END"
    if kind == "redact":
        return f"CASE WHEN {{x}} IS NOT NULL THEN {literal(REDACTED)} END"
    if kind == "month":
        return form.replace("{x}", f"({_FIRST_OF_MONTH})")
    if kind == "token":
        return f"CASE WHEN {{x}} IS NOT NULL THEN {_hmac(form)} END"
    return form  # a cut is refused where these expressions are used, and a hash is `hashed`


def hashed(x: str, form: str, length: str | None) -> str:
    """Return Debezium's mask v2: SHA-256 of salt and value in hex, cut to the column's length.

    Args:
        x: Expression of the column.
        form: Expression of the clear value.
        length: Expression of the column's length in characters; None if it has none.
    """
    salted = f"current_setting({literal(SALT_SETTING)}) || {form}"
    digest = f"encode(sha256(convert_to({salted}, 'UTF8')), 'hex')"
    cut = digest if length is None else f"left({digest}, {length})"
    return f"CASE WHEN {x} IS NOT NULL THEN {cut} END"


def _hmac(text: str) -> str:
    """Return HMAC-SHA-256 of the text in hex (RFC 2104), with the salt as key."""
    inner = f"sha256({_padded_key(_INNER_BYTE)} || convert_to({text}, 'UTF8'))"
    return f"encode(sha256({_padded_key(_OUTER_BYTE)} || {inner}), 'hex')"


def _padded_key(byte: int) -> str:
    """Return the key's block, each byte XOR `byte`; a subquery that runs once per statement."""
    salt = f"convert_to(current_setting({literal(SALT_SETTING)}), 'UTF8')"
    key = f"CASE WHEN length({salt}) > {_BLOCK_BYTES} THEN sha256({salt}) ELSE {salt} END"
    of_key = "CASE WHEN i < length(k) THEN get_byte(k, i) ELSE 0 END"
    return (
        f"(SELECT string_agg(set_byte('\\x00'::bytea, 0, ({of_key}) # {byte}), ''::bytea"
        f" ORDER BY i) FROM (SELECT {key} AS k) AS keys,"
        f" generate_series(0, {_BLOCK_BYTES - 1}) AS i)"
    )
