"""What Firehose could not deliver, brought into the lake after all."""
