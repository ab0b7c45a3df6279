"""Check of a created network's size: Glue gives each worker of a job an address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.aws_model import CreatedNetwork
from cdclake.config.document import Document
from cdclake.config.jobs_model import Jobs
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.subnets import usable_addresses

_JOBS = ("aws", "jobs")


def check_addresses(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse jobs with more workers than their subnet has addresses.

    All jobs run in the first subnet. The sum of all runs depends on their times, so it is left to
    the documentation.
    """
    if not tables or document.get("aws", "network", "existing") is not None:
        return
    cidr = document.get("aws", "network", "create", "cidr") or CreatedNetwork().cidr
    try:
        addresses = usable_addresses(cidr)
    except (ValueError, TypeError):
        return  # the model already refuses it
    for job, default in Jobs().model_dump().items():
        workers = (default | document.mapping(*_JOBS, job))["workers"]
        if type(workers) is int and workers > addresses:
            yield document.problem(
                (*_JOBS, job, "workers"),
                f"{workers} workers need an address each, and a subnet of {cidr} has {addresses}",
                f"write `workers: {addresses}` or fewer; before the first deployment also a larger"
                " `aws: network: create: cidr:`",
            )
