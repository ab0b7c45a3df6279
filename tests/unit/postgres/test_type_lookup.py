"""Types for which Debezium may take another one of the same name."""

from __future__ import annotations

from dataclasses import replace

from cdclake.plan import Column
from cdclake.postgres.admission import check_polled, check_table
from cdclake.postgres.deployed_remedies import deployed_remedy
from cdclake.postgres.propose import propose
from cdclake.postgres.relation_record import RelationRecord
from tests.unit.postgres.tables import actual, column, declared
from tests.unit.postgres.test_relations import source

STATUS = column("status", "enum", mistaken_for=("public.status",))
SOURCE = actual(
    oid=1, columns=(column("id", nullable=False), replace(STATUS, shown="types.status"))
)
DECLARED = declared(("id", "integer"), ("status", "enum"))


def test_a_type_that_debezium_may_not_find_is_refused() -> None:
    [refusal] = check_table(DECLARED, SOURCE, role="cdclake_shop")
    assert "its type types.status" in refusal.message
    assert "public.status" in refusal.message
    assert "another name" in refusal.remedy
    assert "`status: {exclude: true}`" in refusal.remedy


def test_a_column_of_the_key_cannot_be_excluded() -> None:
    keyed = replace(DECLARED, key=("id", "status"), replica_identity="full")
    refusals = check_table(keyed, SOURCE, role="cdclake_shop")
    [refusal] = [each for each in refusals if "its type types.status" in each.message]
    assert "another name" in refusal.remedy and "exclude" not in refusal.remedy


def test_a_column_that_does_not_flow_may_have_such_a_type() -> None:
    assert check_table(declared(("id", "integer")), SOURCE, role="cdclake_shop") == []


def test_a_polled_column_may_have_such_a_type() -> None:
    assert check_polled(DECLARED, SOURCE, ()) == []


def test_a_renamed_column_is_refused_under_its_present_name() -> None:
    renamed = Column(source="state", name="state", type="enum", renamed_from=("status",))
    table = replace(DECLARED, columns=(DECLARED.columns[0], renamed))
    [refusal] = check_table(table, SOURCE, role="cdclake_shop")
    assert "column 'status'" in refusal.message
    assert "`state: {exclude: true}`" in refusal.remedy


def test_a_proposal_excludes_such_a_column() -> None:
    [proposal] = propose([SOURCE], "shop", {})
    assert 'column "status": Debezium may take public.status for its type' in proposal.reason
    assert proposal.declared is not None and proposal.declared.excluded == ("status",)


def test_a_table_of_that_name_that_was_created_later_is_reported() -> None:
    before = replace(SOURCE, columns=(SOURCE.columns[0], replace(STATUS, mistaken_for=())))
    record = RelationRecord.of(DECLARED, before, settled=True)
    assert list(source(before).compare(DECLARED, record)) == []
    [change] = source(replace(before, columns=SOURCE.columns)).compare(DECLARED, record)
    assert (change.kind, change.resync) == ("unreadable", False)
    assert "public.status" in change.message
    assert "`cdclake down --keep-slot` and `cdclake up`" in change.remedy
    assert "`cdclake resync orders`" in change.remedy
    deployed = deployed_remedy(DECLARED, change)
    assert "`cdclake runbook connector`" in deployed
    assert "cdclake resync orders --target aws" in deployed
