"""The pipeline file: YAML in, a checked `Plan` out.

Only the CLI, the CDK app and tests import this package: it needs pydantic and ruamel.yaml, which
neither Glue nor a Lambda has.
"""
