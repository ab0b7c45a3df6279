"""Redrive of records that Firehose could not deliver."""
