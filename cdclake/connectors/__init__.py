"""Connectors next to Debezium: their declaration and their configuration."""
