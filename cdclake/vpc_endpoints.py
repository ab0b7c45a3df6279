"""Interface endpoints of the AWS services that a deployment calls from inside its network."""

from __future__ import annotations

from cdclake.plan import Plan

# S3 has a gateway endpoint, the others an interface in each subnet. They are called from inside: by
# Connect for the database's password, by Glue jobs for tables, logs, metrics, roles and keys.
_OF_CHANGES = ("glue", "kms", "logs", "monitoring", "secretsmanager", "sts")
# Called by a web server's tasks: for images, the router's log, and the stream.
_OF_WEB_LOGS = ("ecr.api", "ecr.dkr", "logs")
_SENT_TO = {"direct_put": "kinesis-firehose", "kinesis": "kinesis-streams"}


def interfaces_of(plan: Plan) -> list[str]:
    """Return the services that the plan's parts call from inside the network."""
    found = [*_OF_CHANGES] if plan.tables else []
    if plan.web_logs:
        found += [*_OF_WEB_LOGS, *(_SENT_TO[logs.stream.source] for logs in plan.web_logs)]
    return list(dict.fromkeys(found))
