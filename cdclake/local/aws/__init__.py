"""S3 and Glue on this machine: moto, with durable storage and Glue's optimistic locking."""
