"""Checks of an account before the first deployment, so that nothing fails in its middle.

They only read; `create_roles` makes the service-linked roles that a first use would make too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cdclake.check import Check, failed, passed, skipped, warned
from cdclake.config import versions
from cdclake.config.aws_model import CreatedNetwork, CreatedSource
from cdclake.config.database_parameters import ENGINES
from cdclake.config.deployment import Deployment
from cdclake.config.regions import (
    restrictions,
    restrictions_of_firehose,
    restrictions_of_partition,
    restrictions_of_source,
)
from cdclake.config.resource_location import location_of
from cdclake.cost.meters import DPUS
from cdclake.deployed.aws_calls import unless_refused
from cdclake.deployed.fixed_names import check_names
from cdclake.deployed.login_password import login_password
from cdclake.deployed.parameter_check import check_parameters
from cdclake.vpc_endpoints import interfaces_of

# By service: the role that it uses, and what of the deployment needs it.
_ROLES = {
    "rds.amazonaws.com": "AWSServiceRoleForRDS",
    "kafka.amazonaws.com": "AWSServiceRoleForKafka",
    "kafkaconnect.amazonaws.com": "AWSServiceRoleForKafkaConnect",
    "ecs.amazonaws.com": "AWSServiceRoleForECS",
}
# Least quotas of any deployment; functions and jobs run next to each other.
_LEAST_FUNCTIONS, _LEAST_DPUS = 20.0, 20.0
_BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
_LEAST_BOOTSTRAP = 6


def preflight(deployment: Deployment) -> list[Check]:
    """Return the result of every check; what AWS refuses to tell is skipped with its reason."""
    checks: Sequence[tuple[str, Callable[[Deployment], Iterator[Check]]]] = (
        ("identity", _identity),
        ("region", _region),
        ("bootstrap", _bootstrap),
        ("zones", _zones),
        ("endpoints", _endpoints),
        ("database class", _database_class),
        ("database parameters", check_parameters),
        ("kafka version", _kafka_version),
        ("service-linked roles", _service_roles),
        ("quotas", _quotas),
        ("lake formation", _lake_formation),
        ("names", check_names),
        ("connector password", login_password),
    )
    return [
        found
        for name, check in checks
        for found in unless_refused(name, partial(check, deployment))
    ]


def create_roles(deployment: Deployment) -> list[str]:
    """Create the missing service-linked roles; return their services."""
    iam = boto3.client("iam")
    missing = [service for service in _needed_roles(deployment) if not _has_role(iam, service)]
    for service in missing:
        iam.create_service_linked_role(AWSServiceName=service)
    return missing


def _identity(deployment: Deployment) -> Iterator[Check]:
    try:
        found = boto3.client("sts").get_caller_identity()
    except (ClientError, BotoCoreError) as error:
        remedy = "sign in, and set AWS_PROFILE and AWS_REGION to the account and region"
        yield failed("identity", f"nothing can be asked of AWS: {error}", remedy)
        return
    here = found["Account"]
    others = [arn for arn in _existing_arns(deployment) if location_of(arn).account != here]
    for arn in others:
        detail = f"{arn} is not in the account {here}"
        yield failed("identity", detail, "use a resource of this account, or sign in to that one")
    if not others:
        yield passed("identity", f"{found['Arn']} for {deployment.prefix}")


def _existing_arns(deployment: Deployment) -> Iterator[str]:
    """Yield the ARNs of existing resources, which must be in the region and account."""
    if (source := deployment.aws.source.existing) is not None:
        yield source.secret_arn
    if (kafka := deployment.aws.kafka.existing) is not None:
        yield kafka.cluster_arn


def _region(deployment: Deployment) -> Iterator[Check]:
    # Not that of a client: without a region, STS has one that is no region.
    here, wanted = boto3.Session().region_name, deployment.aws.region
    if here is None:
        remedy = f"set AWS_REGION={wanted}" if wanted else "set AWS_REGION, or that of AWS_PROFILE"
        yield failed("region", "neither the environment nor the profile names one", remedy)
        return
    if wanted not in (None, here):
        yield failed(
            "region", f"the file says {wanted}, the credentials {here}", f"set AWS_REGION={wanted}"
        )
        return
    network = deployment.aws.network.declared
    zones = network.zones if isinstance(network, CreatedNetwork) else []
    cluster_subnets = _subnets(deployment) if _creates_cluster(deployment) else None
    found = list(restrictions_of_partition(here))
    if _creates_source(deployment):
        found += restrictions_of_source(here)
    found += restrictions(here, zones, cluster_subnets=cluster_subnets)
    if deployment.plan.streams:
        found += restrictions_of_firehose(here)
    for restriction in found:
        yield failed("region", restriction.message, restriction.remedy)
    others = [arn for arn in _existing_arns(deployment) if location_of(arn).region != here]
    for arn in others:
        yield failed("region", f"{arn} is not in {here}", f"use a resource of {here}")
    if not found and not others:
        yield passed("region", here)


def _creates_source(deployment: Deployment) -> bool:
    return bool(deployment.plan.tables) and deployment.aws.source.existing is None


def _creates_cluster(deployment: Deployment) -> bool:
    return bool(deployment.plan.tables) and deployment.aws.kafka.create is not None


def _subnets(deployment: Deployment) -> int:
    network = deployment.aws.network.declared
    return len(network.zones if isinstance(network, CreatedNetwork) else network.subnet_ids)


def _bootstrap(deployment: Deployment) -> Iterator[Check]:
    del deployment
    ssm = boto3.client("ssm")
    remedy = "run `npx cdk bootstrap`"
    try:
        version = int(ssm.get_parameter(Name=_BOOTSTRAP)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        yield failed("bootstrap", "the region is not bootstrapped for the CDK", remedy)
        return
    if version < _LEAST_BOOTSTRAP:
        yield failed("bootstrap", f"version {version} is older than {_LEAST_BOOTSTRAP}", remedy)
    else:
        yield passed("bootstrap", f"version {version}")


def _zones(deployment: Deployment) -> Iterator[Check]:
    network = deployment.aws.network.declared
    if not isinstance(network, CreatedNetwork):
        yield skipped("zones", "the network exists")
        return
    region, found = _account_zones()
    by_letter = {name.removeprefix(region): zone for name, zone in found.items()}
    known = {*by_letter, *by_letter.values()}
    missing = [zone for zone in network.zones if zone not in known]
    listed = ", ".join(f"{letter} = {zone}" for letter, zone in sorted(by_letter.items()))
    if missing:
        yield failed(
            "zones", f"the account has no zone {', '.join(missing)}", f"choose among {listed}"
        )
    else:
        yield passed("zones", listed)


def _account_zones() -> tuple[str, dict[str, str]]:
    """Return the region, and the account's zone IDs by zone name."""
    ec2 = boto3.client("ec2")
    found = ec2.describe_availability_zones()["AvailabilityZones"]
    return ec2.meta.region_name, {zone["ZoneName"]: zone["ZoneId"] for zone in found}


def _zone_names(deployment: Deployment, first: int | None = None) -> set[str] | None:
    """Return the names of the `first` declared zones (None: all); None for an existing network."""
    network = deployment.aws.network.declared
    if not isinstance(network, CreatedNetwork):
        return None
    region, found = _account_zones()
    names = {zone: name for name, zone in found.items()}
    return {names.get(zone, f"{region}{zone}") for zone in network.zones[:first]}


def _endpoints(deployment: Deployment) -> Iterator[Check]:
    created = deployment.aws.network.create
    # The stack puts the endpoints into the first zones.
    wanted = _zone_names(deployment, created.endpoint_zones if created is not None else None)
    if wanted is None:
        yield skipped("endpoints", "the network exists: its owner makes the endpoints")
        return
    services = interfaces_of(deployment.plan)
    if not services:
        yield skipped("endpoints", "nothing in the network calls a service")
        return
    ec2 = boto3.client("ec2")
    names = [f"com.amazonaws.{ec2.meta.region_name}.{service}" for service in services]
    found = ec2.describe_vpc_endpoint_services(ServiceNames=names)["ServiceDetails"]
    zones = {each["ServiceName"]: set(each["AvailabilityZones"]) for each in found}
    lacking = [name for name in names if not wanted <= zones.get(name, set())]
    if lacking:
        yield failed(
            "endpoints",
            f"{', '.join(lacking)} are not in all of {', '.join(sorted(wanted))}",
            "choose other zones, or list those that have all services first and set"
            " `endpoint_zones:` to their number",
        )
    else:
        yield passed("endpoints", f"all services are in {', '.join(sorted(wanted))}")


def _database_class(deployment: Deployment) -> Iterator[Check]:
    source = deployment.aws.source.declared
    if not isinstance(source, CreatedSource) or not deployment.plan.tables:
        yield skipped("database class", "the source exists")
        return
    wanted = _zone_names(deployment) or set()
    kind = "db.serverless" if source.engine == "aurora" else source.instance
    pages = boto3.client("rds").get_paginator("describe_orderable_db_instance_options")
    options = [
        option
        for page in pages.paginate(Engine=ENGINES[source.engine], DBInstanceClass=kind)
        for option in page["OrderableDBInstanceOptions"]
        if option["EngineVersion"].split(".")[0] == versions.POSTGRES
    ]
    zones = {zone["Name"] for option in options for zone in option["AvailabilityZones"]}
    if not options or not wanted <= zones:
        where = f"not in {', '.join(sorted(wanted - zones))}" if options else "not in this region"
        yield failed(
            "database class",
            f"PostgreSQL {versions.POSTGRES} on {kind} is {where}",
            "choose another `aws: source: create: instance:`, or other zones",
        )
    else:
        yield passed("database class", f"{kind} with PostgreSQL {versions.POSTGRES}")


def _kafka_version(deployment: Deployment) -> Iterator[Check]:
    if not _creates_cluster(deployment):
        yield skipped("kafka version", "the cluster exists")
        return
    listed = boto3.client("kafka").list_kafka_versions()["KafkaVersions"]
    active = [each["Version"] for each in listed if each["Status"] == "ACTIVE"]
    if versions.KAFKA in active:
        yield passed("kafka version", versions.KAFKA)
    else:
        yield failed(
            "kafka version",
            f"MSK offers {', '.join(active)} here, not {versions.KAFKA}",
            "change `KAFKA` in cdclake/config/versions.py to one with KRaft",
        )


def _needed_roles(deployment: Deployment) -> list[str]:
    needed = []
    if deployment.plan.tables:
        needed += ["kafkaconnect.amazonaws.com"]
        needed += ["rds.amazonaws.com"] * (deployment.aws.source.create is not None)
        needed += ["kafka.amazonaws.com"] * _creates_cluster(deployment)
    return needed + ["ecs.amazonaws.com"] * bool(deployment.plan.web_logs)


def _has_role(iam: Any, service: str) -> bool:
    try:
        iam.get_role(RoleName=_ROLES[service])
    except iam.exceptions.NoSuchEntityException:
        return False
    return True


def _service_roles(deployment: Deployment) -> Iterator[Check]:
    iam = boto3.client("iam")
    needed = _needed_roles(deployment)
    missing = [service for service in needed if not _has_role(iam, service)]
    if missing:
        yield warned(
            "service-linked roles",
            f"{', '.join(missing)} make their role at first use, which may fail then",
            "run `cdclake doctor --target aws ... --fix`, which creates them",
        )
    else:
        yield passed("service-linked roles", ", ".join(needed) or "none is needed")


def _quotas(deployment: Deployment) -> Iterator[Check]:
    client = boto3.client("service-quotas")
    for service, words, least in _needed_quotas(deployment):
        name = f"quota: {service}"
        try:
            pages = client.get_paginator("list_service_quotas").paginate(ServiceCode=service)
            values = [
                quota["Value"]
                for page in pages
                for quota in page["Quotas"]
                if words.lower() in quota["QuotaName"].lower()
            ]
        except ClientError as error:
            yield skipped(name, f"AWS answers {error.response['Error']['Code']}")
            continue
        if not values:
            yield skipped(name, f"no quota is called {words!r}")
        elif values[0] < least:
            yield failed(
                name, f"{words}: {values[0]:g}, and {least:g} are needed", "request an increase"
            )
        else:
            yield passed(name, f"{words}: {values[0]:g}")


def _needed_quotas(deployment: Deployment) -> Iterator[tuple[str, str, float]]:
    """Yield services of Service Quotas, words of a quota's name, and the value that is needed."""
    yield "lambda", "Concurrent executions", _LEAST_FUNCTIONS + len(deployment.plan.streams)
    kafka = deployment.aws.kafka.create
    if kafka is not None and _creates_cluster(deployment):
        yield (
            "kafka",
            "Number of brokers per account",
            kafka.brokers_per_zone * _subnets(deployment),
        )
    if deployment.plan.tables:
        jobs = deployment.aws.jobs
        dpus = [DPUS[each.worker] * each.workers for each in (jobs.stream, jobs.batch)]
        # Two batch jobs often run at once: one that applies changes and one that maintains tables.
        yield "glue", "Max task dpus per account", max(_LEAST_DPUS, dpus[0] + 2 * dpus[1])


def _lake_formation(deployment: Deployment) -> Iterator[Check]:
    settings = boto3.client("lakeformation").get_data_lake_settings()["DataLakeSettings"]
    defaults = settings.get("CreateTableDefaultPermissions", [])
    by_iam = any(
        each["Principal"].get("DataLakePrincipalIdentifier") == "IAM_ALLOWED_PRINCIPALS"
        for each in defaults
    )
    if by_iam or deployment.lake_formation:
        yield passed("lake formation", "IAM only" if by_iam else "the roles get their rights")
    else:
        yield failed(
            "lake formation",
            "new tables follow Lake Formation, not IAM alone",
            "write `lake: {lake_formation: true}`, and deploy as a Lake Formation administrator",
        )
