"""Name of the bucket that the fixture `s3` makes."""

BUCKET = "lake"
