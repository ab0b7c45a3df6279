"""Tables whose records producers put directly, or into a Kinesis stream."""
