"""Debezium's side of the contract: types, envelope, position, connector configuration."""
