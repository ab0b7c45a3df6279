"""Running local lake: its components, Spark jobs, connector, topics and source."""
