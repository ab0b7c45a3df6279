"""What a repair needs beyond the stream: the source, the connector, what the lake holds."""
