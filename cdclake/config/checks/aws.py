"""Checks of what AWS would refuse, or accept with bad consequences, in a file of valid values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from cdclake.config.aws_model import CreatedNetwork, CreatedSource
from cdclake.config.document import Document, Location
from cdclake.config.kafka_model import CreatedKafka, largest_disk_gb
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.regions import (
    has_two_subnets,
    restrictions,
    restrictions_of_firehose,
    restrictions_of_partition,
    restrictions_of_source,
)
from cdclake.config.schedule import shortest_minutes

_NETWORK = ("aws", "network", "create")
_SOURCE = ("aws", "source", "create")
_KAFKA = ("aws", "kafka", "create")
_RDS_DATABASE = r"[A-Za-z][A-Za-z0-9_]{0,62}"

# CloudFormation allows 500 resources per stack; the rest is reserved for later needs of a table.
_MAX_RESOURCES = 450
_MAX_STREAMS = 80  # each takes five with its role and log, and its rights in Lake Formation
# Derived tables, copies and polls: next to every job, their stack has 390 resources to spare, and
# room for 1.8 kB each.
_MAX_JOB_SCHEDULES = 350
# A Glue job needs minutes to start, is billed for at least one, and refuses a second run.
_MIN_JOB_MINUTES = 10
# With the 10 %: Amazon RDS User Guide, "Managing capacity automatically with storage autoscaling".
_MAX_STORAGE_GB = 65536
_T3_TABLES = 30  # kafka.t3.small admits 4 new IAM connections a second, and each table is a topic
_TABLE, _OPTIMIZED = 1, 7  # a topic; under `maintenance: glue` three optimizers of log and state


def check_storage(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse slot limits that let an unread slot fill the database's disk."""
    del tables
    declared = document.mapping(*_SOURCE)
    sizes = CreatedSource().model_dump() | declared
    storage, most, wal = (sizes[f"{n}_gb"] for n in ("storage", "max_storage", "slot_wal"))
    if type(storage) is type(wal) is int and wal * 2 > storage:
        yield document.problem(
            (*_SOURCE, "slot_wal_gb" if "slot_wal_gb" in declared else "storage_gb"),
            f"{wal} GB of WAL for the slot may fill a disk of {storage} GB",
            f"write `slot_wal_gb: {storage // 2}` or less, or increase `storage_gb`",
        )
    if type(storage) is type(most) is int and most < (least := -(-storage * 11 // 10)):
        remedy = f"write `max_storage_gb: {least}` or more"
        if least > _MAX_STORAGE_GB:
            remedy = f"write `storage_gb: {_MAX_STORAGE_GB * 10 // 11}` or less"
        yield document.problem(
            (*_SOURCE, "max_storage_gb" if "max_storage_gb" in declared else "storage_gb"),
            f"the disk starts with {storage} GB but may grow to {most} GB: RDS requires at least"
            " 10 % more",
            remedy,
        )


def check_kafka(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse brokers that are too small for the file, and settings that MSK Express lacks."""
    declared = document.mapping(*_KAFKA)
    sizes = CreatedKafka().model_dump() | declared
    instance, volume, most = sizes["instance"], sizes["volume_gb"], sizes["max_volume_gb"]
    location = (*_KAFKA, "instance")
    if instance == "kafka.t3.small" and len(tables) > _T3_TABLES:
        yield document.problem(
            location,
            f"kafka.t3.small admits 4 new connections a second: it is too small for {len(tables)}"
            f" tables, at most {_T3_TABLES}",
            "write `size: small` or `instance: kafka.m7g.large`",
        )
    if str(instance).startswith("express."):
        yield from _check_express(document)
    elif type(volume) is type(most) is int and most < volume:
        yield document.problem(
            (*_KAFKA, "max_volume_gb"),
            f"a broker's disk starts with {volume} GB but may grow to {most} GB",
            f"write `max_volume_gb: {volume}` or more",
        )
    if document.get("aws", "source", "existing") is None and document.mapping("source"):
        yield from _check_first_load(document, sizes)


def _check_express(document: Document) -> Iterator[Problem]:
    region, (location, subnets) = document.get("aws", "region"), _subnets(document)
    if has_two_subnets(region):
        yield document.problem(
            (*_KAFKA, "instance"),
            f"MSK Express needs three availability zones, and MSK allows two subnets in {region}",
            "write `instance: kafka.m7g.large`",
        )
    elif subnets != 3:
        yield document.problem(
            location,
            "MSK Express needs three availability zones",
            f"list three {location[-1]}, or write `instance: kafka.m7g.large`",
        )


def _subnets(document: Document) -> tuple[Location, int]:
    """Return the place and the number of the network's subnets, created or existing."""
    existing, zones = ("aws", "network", "existing", "subnet_ids"), (*_NETWORK, "zones")
    if isinstance(listed := document.get(*existing), list):
        return existing, len(listed)
    listed = document.get(*zones)
    return zones, len(listed if isinstance(listed, list) else CreatedNetwork().zones)


def _check_first_load(document: Document, sizes: dict[str, Any]) -> Iterator[Problem]:
    """Refuse disks that the first load of a full database would fill: it passes through Kafka."""
    storage = (CreatedSource().model_dump() | document.mapping(*_SOURCE))["storage_gb"]
    volume, brokers = sizes["volume_gb"], sizes["brokers_per_zone"]
    if str(sizes["instance"]).startswith("express."):
        return
    limit = sizes["max_volume_gb"]
    if not type(storage) is type(volume) is type(brokers) is int or brokers < 1:
        return
    if limit is not None and type(limit) is not int:
        return
    most = largest_disk_gb(volume, limit)
    if most * brokers < storage:
        yield document.problem(
            (*_KAFKA, "max_volume_gb"),
            f"the brokers of a zone hold {most * brokers} GB at most: the first load of a"
            f" database of {storage} GB passes through them and may fill them",
            f"write `max_volume_gb: {-(-storage // brokers)}` or more",
        )


def check_region(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse a region or zones without the services that the file needs (`config.regions`)."""
    region = document.get("aws", "region")
    is_delivered = any(table.entry.get("delivery") == "firehose" for table in tables)
    needs_firehose = is_delivered or document.mapping("puts") or document.mapping("weblogs")
    if isinstance(region, str) and needs_firehose:
        for restriction in restrictions_of_firehose(region):
            yield document.problem(("aws", "region"), restriction.message, restriction.remedy)
    if not isinstance(region, str):
        return
    found = list(restrictions_of_partition(region))
    if document.mapping("source") and document.get("aws", "source", "existing") is None:
        found += restrictions_of_source(region)
    for restriction in found:
        yield document.problem(("aws", "region"), restriction.message, restriction.remedy)
    zones, (location, subnets) = document.get(*_NETWORK, "zones"), _subnets(document)
    creates_cluster = bool(tables) and document.get("aws", "kafka", "existing") is None
    for restriction in restrictions(
        region,
        zones if isinstance(zones, list) else (),
        cluster_subnets=subnets if creates_cluster else None,
    ):
        yield document.problem(location, restriction.message, restriction.remedy)


def check_database(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse database names that RDS cannot create."""
    del tables
    name = document.get("source", "database")
    if document.get("aws", "source", "existing") is not None or not isinstance(name, str):
        return
    if re.fullmatch(_RDS_DATABASE, name) is None:
        yield document.problem(
            ("source", "database"),
            f"RDS cannot create a database named {name!r}",
            "use letters, digits and underscores, or declare `aws: source: existing:`",
        )


def check_name(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse a pipeline name that gives the created database server a name with `--`."""
    del tables
    name, is_existing = document.get("name"), document.get("aws", "source", "existing") is not None
    if is_existing or not document.mapping("source") or not isinstance(name, str):
        return
    if "--" in f"{name}-":  # the server's name continues it with a hyphen
        yield document.problem(
            ("name",),
            f"RDS refuses two hyphens in a row, as in the server's name {name}-source",
            f"write `name: {re.sub('-+', '-', name).strip('-')}`, or declare"
            " `aws: source: existing:`",
        )


def check_schedules(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse schedules that start runs faster than Glue finishes them."""
    for location in _schedules(document, tables):
        declared = document.get(*location)
        minutes = shortest_minutes(declared) if isinstance(declared, str) else None
        if minutes is not None and minutes < _MIN_JOB_MINUTES:
            yield document.problem(
                location,
                f"{declared!r} starts a Glue job every {minutes} min: most starts would be"
                " refused, since the previous run is not finished, and each run costs at least a"
                " minute",
                "write `rate(15 minutes)`, under `environments:` if the local lake runs it more"
                " often",
            )


def check_job_schedules(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the stack of the jobs has room for every schedule; report the first without."""
    counted: set[tuple[object, ...]] = set()
    for location in _schedules(document, tables):
        if location[0] == "schedules":  # the few of the jobs over all tables
            continue
        # Polled tables with the same `every` share a schedule.
        is_poll = location[-1] == "every"
        counted.add(("every", str(document.get(*location))) if is_poll else location)
        if len(counted) > _MAX_JOB_SCHEDULES:
            yield document.problem(
                location,
                "the stack of the Glue jobs has no room for another schedule: it holds"
                f" {_MAX_JOB_SCHEDULES} of derived tables, Hudi copies and polls",
                "declare fewer derived tables and copies; give polled tables a shared `every:`",
            )
            return


def _schedules(document: Document, tables: Sequence[TableOutline]) -> Iterator[Location]:
    """Yield the places of the schedules that start Glue jobs."""
    yield from (("schedules", name) for name in document.mapping("schedules"))
    yield from (("derived", name, "schedule") for name in document.mapping("derived"))
    for table in tables:
        if table.is_polled:
            yield (*table.location, "capture", "poll", "every")
        copies = table.entry.get("publish")
        for index in range(len(copies) if isinstance(copies, list) else 0):
            yield (*table.location, "publish", index, "hudi", "schedule")


def check_delivery(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check the number of Firehose streams, and that their brokers support private links."""
    delivered = [table for table in tables if table.entry.get("delivery") == "firehose"]
    streams: set[str] = set()
    for table in delivered:
        streams.add(str(table.entry.get("domain") or table.spelled))
        if len(streams) > _MAX_STREAMS:
            yield document.problem(
                (*table.location, "delivery"),
                f"the stack of the Firehose streams has no room for {table.spelled!r}:"
                f" it holds {_MAX_STREAMS}",
                "group tables into a shared `domain:`",
            )
            return
    instance = ("aws", "kafka", "create", "instance")
    if delivered and document.get(*instance) == "kafka.t3.small":
        yield document.problem(
            instance,
            "Firehose reads through private links only, and MSK has none for kafka.t3.small",
            "write `kafka.m7g.large`, or `delivery: stream` for the tables",
        )


def check_shards(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that each shard fits into one stack; report the first table that does not."""
    filled: dict[int, int] = defaultdict(int)
    for table in tables:
        shard = table.entry.get("shard", 1)
        if type(shard) is not int:
            continue
        before = filled[shard]
        filled[shard] += _OPTIMIZED if table.entry.get("maintenance") == "glue" else _TABLE
        if before <= _MAX_RESOURCES < filled[shard]:
            yield document.problem(
                table.location,
                f"the stack of shard {shard} has no room for {table.spelled!r}",
                f"write `shard: {shard + 1}` here and below; leave the tables above unchanged",
            )
