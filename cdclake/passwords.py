"""Passwords in texts: found in values of the pipeline file, masked in messages and logs."""

from __future__ import annotations

import re

_MASK = "***"
_KEY = re.compile(r"passw(or)?d|passphrase|\bpwd\b", re.IGNORECASE)
# Not a reference to a secret, `${...}`, which settings of `connectors:` may have there.
_IN_URL = re.compile(r"://[^/\s:@]*:(?!\$\{)[^@\s]+@")
_IN_DSN = re.compile(r"\bpassword\s*=\s*(?![\"']?\$\{)\S", re.IGNORECASE)
# The masked parts are rather too long than too short: a password may have quotes, commas and `@`.
_MASKED_IN_URL = re.compile(r"(://[^\s:/@]*:)\S*(?=@)")
_MASKED_VALUE = re.compile(
    r"""((?:passw(?:or)?d|passphrase|\bpwd)\\*['"]?\s*[=:]\s*)"""
    r"""(?:\\*(['"])(?:\\+.|(?!\2).)*(?:\2|$)|\S+?(?=['"),;]*(?:\s|$)))""",
    re.IGNORECASE | re.MULTILINE,
)


def is_password_key(key: str) -> bool:
    """Check whether a setting or key of this name holds a password."""
    return _KEY.search(key) is not None


def carries_password(value: str) -> bool:
    """Check whether a text such as a DSN or a URL contains a password in clear."""
    return bool(_IN_URL.search(value) or _IN_DSN.search(value))


def without_passwords(text: str) -> str:
    """Return the text with the passwords of URLs, DSNs, JSON and keyword arguments as `***`.

    >>> without_passwords("cannot reach postgresql://u:p@ss@h/d, or 'host=h password=x'")
    "cannot reach postgresql://u:***@h/d, or 'host=h password=***'"
    """
    return _MASKED_VALUE.sub(rf"\1{_MASK}", _MASKED_IN_URL.sub(rf"\1{_MASK}", text))
