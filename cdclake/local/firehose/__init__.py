"""A stand-in for Amazon Data Firehose; docs/firehose.md lists where it differs from AWS's."""
