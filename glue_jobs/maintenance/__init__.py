"""Upkeep of tables: small, clean, and with nothing removed that somebody still needs."""
