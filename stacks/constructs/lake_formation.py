"""Rights in Lake Formation, for accounts whose Data Catalog does not follow IAM alone.

They repeat what the roles' own statements allow on the catalog; files stay a matter of IAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aws_cdk import App, Aws, aws_lakeformation
from constructs import Construct

from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, TableGrant, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.constructs.service_role import ServiceRole

_Permissions = aws_lakeformation.CfnPrincipalPermissions
# By action of IAM: what Lake Formation calls it, of the database and of its tables.
_ON_DATABASE = {"glue:CreateTable": "CREATE_TABLE", "glue:GetDatabase": "DESCRIBE"}
_ON_TABLES = {
    "glue:GetTable": ("DESCRIBE", "SELECT"),
    "glue:UpdateTable": ("ALTER", "INSERT", "DELETE"),
}


class RegisteredLocation(Construct):
    """The warehouse bucket as a data location, which readers reach through Lake Formation."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        warehouse: BucketReference,
        ground: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        role = ServiceRole(
            self,
            "Role",
            service="lakeformation",
            statements=[
                Grant(
                    actions=["s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
                    on=[f"{warehouse.arn}/*"],
                    because="the files of every table in the bucket, for readers with rights on it",
                ),
                Grant(actions=["s3:ListBucket"], on=[warehouse.arn]),
                through_s3(ground.key_arn),
            ],
        )
        aws_lakeformation.CfnResource(
            self,
            "Location",
            resource_arn=warehouse.arn,
            use_service_linked_role=False,
            role_arn=role.arn,
        )


def grant_in_lake_formation(app: App, *, location_arn: str) -> None:
    """Repeat the rights of every role of the app on databases and tables in Lake Formation."""
    roles = [node for node in app.node.find_all() if isinstance(node, ServiceRole)]
    for role in roles:
        for number, tables in enumerate(role.tables):
            _add(role, number, tables, location_arn)


def _add(role: ServiceRole, number: int, grant: TableGrant, location_arn: str) -> None:
    scope = Construct(role, f"LakeFormation{number}")
    on_database = [_ON_DATABASE[action] for action in grant.actions if action in _ON_DATABASE]
    if on_database:
        database = _Permissions.DatabaseResourceProperty(
            catalog_id=Aws.ACCOUNT_ID, name=grant.database
        )
        _permit(scope, "Database", role, on_database, database=database)
    if "glue:CreateTable" in grant.actions:
        location = _Permissions.DataLocationResourceProperty(
            catalog_id=Aws.ACCOUNT_ID, resource_arn=location_arn
        )
        _permit(scope, "Location", role, ["DATA_LOCATION_ACCESS"], data_location=location)
    on_tables = [what for action in grant.actions for what in _ON_TABLES.get(action, ())]
    for construct_id, table in _tables(grant):
        _permit(scope, construct_id, role, on_tables, table=table)


def _tables(
    grant: TableGrant,
) -> Iterator[tuple[str, aws_lakeformation.CfnPrincipalPermissions.TableResourceProperty]]:
    """Yield the tables; names that end in `*` are every table: Lake Formation has no patterns."""
    database = {"catalog_id": Aws.ACCOUNT_ID, "database_name": grant.database}
    if any(name.endswith("*") for name in grant.tables):
        yield "Tables", _Permissions.TableResourceProperty(**database, table_wildcard={})
        return
    for name in grant.tables:
        yield f"Table-{name}", _Permissions.TableResourceProperty(**database, name=name)


def _permit(
    scope: Construct, construct_id: str, role: ServiceRole, what: list[str], **resource: Any
) -> None:
    _Permissions(
        scope,
        construct_id,
        principal=_Permissions.DataLakePrincipalProperty(data_lake_principal_identifier=role.arn),
        resource=_Permissions.ResourceProperty(**resource),
        permissions=sorted(set(what)),
        permissions_with_grant_option=[],
    )
