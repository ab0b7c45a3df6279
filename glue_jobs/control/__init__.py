"""JSON objects in S3: the only interface of a running stream to the other programs."""
