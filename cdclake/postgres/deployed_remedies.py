"""Remedies for changed relations in a deployment, where a deployment replaces `cdclake up`."""

from __future__ import annotations

from cdclake.plan import Table
from cdclake.postgres.relations import RelationChange
from cdclake.postgres.source_names import check_rereading, rereading_remedy

# An unchanged file changes no property of the custom resource: CloudFormation would not call it.
_PUBLISH = "increase `aws: connect: login_version` and deploy, which publishes it"


def deployed_remedy(table: Table, change: RelationChange) -> str:
    """Return the operator's steps for a change that the deployed check reports."""
    read = rereading_remedy(table, options=" --target aws", is_deployed=True)
    match change.kind:
        case "recreated" | "unpublished":
            return read if table.delivery == "firehose" else f"{_PUBLISH}; then {read}"
        case "missing":
            return (
                f"create it, {_PUBLISH}, and {read}; or remove {table.source} from the file and"
                " deploy: its rows remain in the lake"
            )
        case "renamed" if check_rereading(table.schema, table.table):
            return f"declare the new name under another `name:`, remove {table.source}, and deploy"
        case "renamed":
            return (
                f"{change.statements} then {read}; or declare the new name under another `name:`,"
                f" remove {table.source}, and deploy"
            )
        case "key":
            return f"{change.statements}; then {read}"
        case "unreadable" if change.statements:
            restart = "start the connector again, as in `cdclake runbook connector`"
            return f"{change.statements}; then {restart}, and {read}"
        case "unreadable":
            return change.remedy
        case "unlogged":
            return f"{change.statements} then {read}" if change.statements else read
        case "attached" | "detached" | "replaced" | "relabelled" | "converted" | "rewritten":
            return read
