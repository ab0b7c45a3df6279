"""Job runtime: arguments, session, logs, metrics, secrets, Kafka and the source."""
