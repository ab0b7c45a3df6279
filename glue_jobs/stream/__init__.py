"""From Kafka topics to change logs: decode, drop repeats, append under a fence, quarantine."""
