"""Rights in Lake Formation, for accounts whose Data Catalog does not follow IAM alone.

They repeat what the roles' own statements allow on the catalog; files stay a matter of IAM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from aws_cdk import App, Aws, aws_lakeformation
from constructs import Construct

from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, TableGrant, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference
from cdclake.stacks.constructs.service_role import ServiceRole

_Permissions = aws_lakeformation.CfnPrincipalPermissions
# By action of IAM: its permissions in Lake Formation, on the database and on tables.
_ON_DATABASE = {"glue:CreateTable": "CREATE_TABLE", "glue:GetDatabase": "DESCRIBE"}
_ON_TABLES = {
    "glue:GetTable": ("DESCRIBE", "SELECT"),
    "glue:GetTables": ("DESCRIBE",),
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
        context: DeploymentContext,
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
                through_s3(context.key_arn),
            ],
        )
        aws_lakeformation.CfnResource(
            self,
            "Location",
            resource_arn=warehouse.arn,
            use_service_linked_role=False,
            role_arn=role.arn,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Database, its data location, one of its tables, or every table."""

    kind: str  # `Database`, `Location`, `Table` or `Tables`
    database: str
    table: str = ""

    @property
    def construct_id(self) -> str:
        return f"{self.kind}-{self.table}" if self.table else self.kind

    def resource(self, location_arn: str) -> dict[str, Any]:
        """Return the arguments of the resource property."""
        catalog = {"catalog_id": Aws.ACCOUNT_ID}
        if self.kind == "Location":
            location = _Permissions.DataLocationResourceProperty(
                **catalog, resource_arn=location_arn
            )
            return {"data_location": location}
        if self.kind == "Database":
            return {
                "database": _Permissions.DatabaseResourceProperty(**catalog, name=self.database)
            }
        which: dict[str, Any] = {"name": self.table} if self.table else {"table_wildcard": {}}
        table = _Permissions.TableResourceProperty(**catalog, database_name=self.database, **which)
        return {"table": table}


def grant_in_lake_formation(app: App, *, location_arn: str) -> None:
    """Repeat the rights of every role of the app on databases and tables in Lake Formation."""
    roles = [node for node in app.node.find_all() if isinstance(node, ServiceRole)]
    for role in roles:
        # The id must not change: CloudFormation would create each grant again before it revokes
        # the previous one, and both are the same to Lake Formation.
        scope = Construct(role, "LakeFormation0")
        for target, permissions in _merge(role.tables).items():
            permission = _Permissions(
                scope,
                target.construct_id,
                principal=_Permissions.DataLakePrincipalProperty(
                    data_lake_principal_identifier=role.arn
                ),
                resource=_Permissions.ResourceProperty(**target.resource(location_arn)),
                permissions=sorted(permissions),
                permissions_with_grant_option=[],
            )
            for user in role.users:
                user.node.add_dependency(permission)


def _merge(grants: Iterable[TableGrant]) -> dict[_Target, set[str]]:
    """Return the permissions by target: Lake Formation has one grant of a principal on each."""
    merged: dict[_Target, set[str]] = {}
    for grant in grants:
        for target, permissions in _permissions(grant):
            if permissions:
                merged.setdefault(target, set()).update(permissions)
    return merged


def _permissions(grant: TableGrant) -> Iterator[tuple[_Target, list[str]]]:
    """Yield the permissions on each target.

    A role that creates tables of given names needs none on them: it owns what it creates, and a
    grant on a table that does not exist yet would be refused.
    """
    on_database = [_ON_DATABASE[action] for action in grant.actions if action in _ON_DATABASE]
    yield _Target(kind="Database", database=grant.database), on_database
    creates, every_table = "glue:CreateTable" in grant.actions, "*" in grant.tables
    if creates:
        location = _Target(kind="Location", database=grant.database)
        yield location, ["DATA_LOCATION_ACCESS"]
    if every_table or not creates:
        on_tables = [each for action in grant.actions for each in _ON_TABLES.get(action, ())]
        yield from ((target, on_tables) for target in _tables(grant))


def _tables(grant: TableGrant) -> Iterator[_Target]:
    """Yield the tables; names with `*` are every table: Lake Formation has no patterns."""
    if any("*" in name for name in grant.tables):
        yield _Target(kind="Tables", database=grant.database)
        return
    for name in grant.tables:
        yield _Target(kind="Table", database=grant.database, table=name)
