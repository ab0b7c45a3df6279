"""Streaming job: decode Kafka records, deduplicate, append with a fence, quarantine."""
