"""Bulk load: a table's rows from the database into its log and state, past Kafka."""
