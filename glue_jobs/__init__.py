"""Glue jobs: entry scripts, and the PySpark packages that they use."""
