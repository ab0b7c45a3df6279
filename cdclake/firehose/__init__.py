"""Firehose streams of a plan, and the rows that they deliver."""
