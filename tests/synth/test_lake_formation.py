"""Rights in Lake Formation: each can be granted, once, and is of something that exists by then."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from typing import Any

import pytest

from tests.synth.deployments import (
    CONNECTED,
    DELIVERED,
    EXISTING,
    OPTIMIZED,
    PIPELINE,
    PRIVATE,
    PUTS,
    VARIANTS,
    Deploy,
    Synthesized,
    Template,
)
from tests.synth.permissions import allows
from tests.synth.rules import broken_rules
from tests.synth.rules.reading import listed, walk

GOVERNED = "lake: {lake_formation: true}\n"
STREAM = "AWS::KinesisFirehose::DeliveryStream"
GRANT, TABLE = "AWS::LakeFormation::PrincipalPermissions", "AWS::Glue::Table"
AWAITED = "Custom::CdclakeTables"
FILES = {
    "all jobs": VARIANTS["governed"],
    "connectors": PIPELINE + OPTIMIZED + EXISTING + CONNECTED + GOVERNED,
    "delivered": PIPELINE + DELIVERED + PRIVATE + GOVERNED,
    "puts": PUTS + GOVERNED,
}
_DELIVERED = pytest.param("delivered", marks=pytest.mark.synth)
every_file = pytest.mark.parametrize(
    "name", [_DELIVERED if name == "delivered" else name for name in FILES]
)


def grants(deployed: Synthesized) -> Iterator[tuple[str, Template]]:
    """Every right, with the stack that it is in."""
    for stack, template in deployed.templates.items():
        for resource in template["Resources"].values():
            if resource["Type"] == GRANT:
                yield stack, resource


@every_file
def test_each_grant_has_permissions(deploy: Deploy, name: str) -> None:
    found = [resource["Properties"] for _, resource in grants(deploy(FILES[name]))]
    assert found
    assert [each for each in found if not each["Permissions"]] == []


@every_file
def test_a_role_has_one_grant_on_a_resource(deploy: Deploy, name: str) -> None:
    """They identify the grant: CloudFormation refuses a second one of them."""
    count = Counter(
        json.dumps([stack, each["Properties"]["Principal"], each["Properties"]["Resource"]])
        for stack, each in grants(deploy(FILES[name]))
    )
    assert [key for key, times in count.items() if times > 1] == []


@every_file
def test_a_granted_table_exists_before_the_grant(deploy: Deploy, name: str) -> None:
    deployed = deploy(FILES[name])
    for stack, resource in grants(deployed):
        table = resource["Properties"]["Resource"].get("Table", {}).get("Name")
        if table is not None:
            made = [
                logical
                for logical, each in deployed.templates[stack]["Resources"].items()
                if (each["Type"] == TABLE and each["Properties"]["Name"] == table)
                or (each["Type"] == AWAITED and table in each["Properties"]["Tables"])
            ]
            assert made, f"no resource is the table {table}"
            assert {*made} <= {*listed(resource.get("DependsOn", []))}, table


def of_stream(properties: Template, _: Template) -> Any:
    return properties["IcebergDestinationConfiguration"]["RoleARN"]


def of_optimizer(properties: Template, _: Template) -> Any:
    return properties["TableOptimizerConfiguration"]["RoleArn"]


def of_connector(properties: Template, _: Template) -> Any:
    return properties["ServiceExecutionRoleArn"]


def of_called_function(properties: Template, resources: Template) -> Any:
    function = resources[properties["ServiceToken"]["Fn::GetAtt"][0]]
    return function["Properties"]["Role"]


@pytest.mark.parametrize(
    ("name", "kind", "role_of"),
    [
        ("puts", STREAM, of_stream),
        pytest.param("delivered", STREAM, of_stream, marks=pytest.mark.synth),
        pytest.param(
            "delivered", "Custom::CdclakeTables", of_called_function, marks=pytest.mark.synth
        ),
        ("connectors", "Custom::CdclakeTables", of_called_function),
        ("connectors", "AWS::Glue::TableOptimizer", of_optimizer),
        ("puts", "AWS::Glue::TableOptimizer", of_optimizer),
        ("connectors", "AWS::KafkaConnect::Connector", of_connector),
    ],
)
def test_a_user_of_a_role_is_created_after_its_rights(
    deploy: Deploy, name: str, kind: str, role_of: Callable[[Template, Template], Any]
) -> None:
    found = 0
    for template in deploy(FILES[name]).templates.values():
        resources = template["Resources"]
        for user in (each for each in resources.values() if each["Type"] == kind):
            role = role_of(user["Properties"], resources)
            rights = {
                logical
                for logical, each in resources.items()
                if each["Type"] == GRANT
                and each["Properties"]["Principal"]["DataLakePrincipalIdentifier"] == role
            }
            assert rights <= {*listed(user.get("DependsOn", []))}
            found += len(rights)
    assert found


@every_file
def test_no_resource_waits_for_itself(deploy: Deploy, name: str) -> None:
    for template in deploy(FILES[name]).templates.values():
        resources = template["Resources"]
        needs = {logical: {*_needed(each)} & {*resources} for logical, each in resources.items()}
        TopologicalSorter(needs).prepare()  # raises CycleError


def _needed(resource: Template) -> Iterator[str]:
    """Yield the names that the resource depends on, or refers to."""
    yield from listed(resource.get("DependsOn", []))
    for path, value in walk(resource):
        if path and path[-1] == "Ref":
            yield value
        elif path and path[-1] == "Fn::GetAtt":
            yield value[0]


@pytest.mark.parametrize("name", ["connectors", "puts"])
def test_no_rule_is_broken(deploy: Deploy, name: str) -> None:
    assert broken_rules(deploy(FILES[name]).templates) == []


def of_role(deployed: Synthesized, named: str) -> dict[str, list[Any]]:
    """The rights of the roles whose logical id has this part, by resource."""
    return {
        json.dumps(each["Properties"]["Resource"]): each["Properties"]["Permissions"]
        for _, each in grants(deployed)
        if named in str(each["Properties"]["Principal"])
    }


def test_the_erasure_reads_and_lists_every_table(deploy: Deploy) -> None:
    [(resource, permissions)] = of_role(deploy(FILES["all jobs"]), "ForgetRows").items()
    assert "TableWildcard" in resource
    assert permissions == ["DESCRIBE", "SELECT"]


def test_a_sink_creates_tables_and_owns_them(deploy: Deploy) -> None:
    found = of_role(deploy(FILES["connectors"]), "Sinklake")
    kinds = {next(iter(json.loads(resource))): rights for resource, rights in found.items()}
    assert kinds == {
        "Database": ["CREATE_TABLE", "DESCRIBE"],
        "DataLocation": ["DATA_LOCATION_ACCESS"],
    }


def test_a_put_streams_rights_are_on_its_tables(deploy: Deploy) -> None:
    found = of_role(deploy(FILES["puts"]), "Requests")
    tables = {json.loads(resource).get("Table", {}).get("Name") for resource in found}
    assert {"clicks", "visits"} <= tables


@pytest.mark.parametrize(
    ("name", "role"),
    [("puts", "Optimizers"), pytest.param("delivered", "events", marks=pytest.mark.synth)],
)
def test_roles_of_known_tables_have_no_rights_on_others(
    deploy: Deploy, name: str, role: str
) -> None:
    found = of_role(deploy(FILES[name]), role)
    assert any('"Name"' in resource for resource in found)
    assert [resource for resource in found if "TableWildcard" in resource] == []


@pytest.mark.parametrize("name", ["puts", "connectors"])
def test_an_optimizer_gets_credentials_from_lake_formation(deploy: Deploy, name: str) -> None:
    governed, plain = deploy(FILES[name]), deploy(FILES[name].replace(GOVERNED, ""))
    for deployed, wanted in ((governed, True), (plain, False)):
        roles = [
            template["Resources"][arn["Fn::GetAtt"][0]]
            for template in deployed.templates.values()
            for each in template["Resources"].values()
            if each["Type"] == "AWS::Glue::TableOptimizer"
            for arn in [each["Properties"]["TableOptimizerConfiguration"]["RoleArn"]]
        ]
        assert roles
        assert {allows(role, "lakeformation:GetDataAccess", "*") for role in roles} == {wanted}
