"""A Spark session with an Iceberg catalog in a temporary folder, and a source for bulk loads."""

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from tests.spark.session import open_test_session

    session = open_test_session(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


@pytest.fixture(scope="module")
def source(spark, tmp_path_factory):
    """An empty database that bulk loads read, with the files that their secrets come from."""
    from psycopg.conninfo import conninfo_to_dict

    from tests.local.source_database import running_server
    from tests.recorded.recording import SALT
    from tests.spark.bulk import BulkSource

    secrets = tmp_path_factory.mktemp("secrets") / "secrets.properties"
    with running_server() as server:
        dsn = f"{server}/postgres"
        password = conninfo_to_dict(dsn)["password"]
        secrets.write_text(f"mask_salt={SALT}\npassword={password}\n")
        yield BulkSource(spark, dsn, secrets)
