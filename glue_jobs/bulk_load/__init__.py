"""Bulk load: a table's rows from the database into changelog and state, without Kafka."""
