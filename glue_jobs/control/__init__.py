"""The JSON objects in S3: all that other programs may know of a running stream."""
