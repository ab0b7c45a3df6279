"""Debezium's formats: types, envelope, position, connector configuration."""
