"""Remedies of the connector's failures."""

from cdclake.local.lake.connector_failures import remedy_for


def test_a_slot_that_cannot_be_decoded_is_dropped() -> None:
    # As Connect reported it (tests/local/test_slot_creation.py makes it fail).
    failure = (
        "org.postgresql.util.PSQLException: ERROR:"
        ' could not map filenumber "base/5/16843" to relation OID'
    )
    remedy = remedy_for(failure, "cdclake_it's")
    assert remedy is not None
    assert "`SELECT pg_drop_replication_slot('cdclake_it''s')`" in remedy


def test_a_slot_with_changes_of_a_time_without_publication_is_dropped() -> None:
    # As Connect reported it (tests/local/test_epochs.py makes it fail).
    failure = 'org.postgresql.util.PSQLException: ERROR: publication "cdclake_shop" does not exist'
    remedy = remedy_for(failure, "cdclake_shop")
    assert remedy is not None
    assert "`SELECT pg_drop_replication_slot('cdclake_shop')`" in remedy


def test_columns_that_differ_only_by_case_are_renamed() -> None:
    failure = (  # as Debezium's JdbcConnection and PgOutputMessageDecoder throw it
        "io.debezium.DebeziumException: Table 'public.t' has columns that differ only by case."
        " Column name: 'Status'."
    )
    remedy = remedy_for(failure, "cdclake_shop")
    assert remedy is not None and remedy.startswith("rename one of the columns in the source")
    assert "`SELECT pg_drop_replication_slot('cdclake_shop')`" in remedy


def test_of_other_failures_no_remedy_is_known() -> None:
    assert remedy_for("java.lang.OutOfMemoryError: Java heap space", "cdclake_shop") is None
