"""The Glue jobs: entry scripts beside the packages that they are made of; PySpark."""
