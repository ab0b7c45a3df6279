"""Local stand-in for Amazon Data Firehose; docs/firehose.md lists how it differs from AWS."""
