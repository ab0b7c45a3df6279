"""Placeholder of the other branch."""

REGISTER_SECONDS = 30
