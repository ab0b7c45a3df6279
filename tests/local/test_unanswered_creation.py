"""Deletion after a creation that could not answer CloudFormation, on a real PostgreSQL."""

from __future__ import annotations

import pytest

from tests.local.source_database import run
from tests.local.test_prepare_source import Deployment, authority, deployed

__all__ = ["authority", "deployed"]  # fixtures

pytestmark = pytest.mark.local


def test_delete_with_an_unsent_id_keeps_objects_without_a_mark(deployed: Deployment) -> None:
    """As after a Create that was refused and could not answer: the id is CloudFormation's."""
    assert deployed.ask("Create")["Status"] == "SUCCESS"
    run(deployed.dsn, f"SELECT pg_create_logical_replication_slot('{deployed.slot}', 'pgoutput')")
    query = f"SELECT shobj_description('{deployed.slot}'::regrole, 'pg_authid')"
    [[mark]] = run(deployed.dsn, query)
    run(deployed.dsn, f"COMMENT ON ROLE {deployed.slot} IS NULL")  # as an earlier version's
    unsent = "shop-cdc-Preparation-1A2B3C"
    told = deployed.ask("Delete", PhysicalResourceId=unsent)
    assert told["Status"] == "FAILED" and "not made by this lake" in told["Reason"]
    assert deployed.slots() == [(False,)]
    run(deployed.dsn, f"COMMENT ON ROLE {deployed.slot} IS '{mark}'")
    assert deployed.ask("Delete", PhysicalResourceId=unsent)["Status"] == "SUCCESS"
    assert deployed.slots() == []
