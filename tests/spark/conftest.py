"""A Spark session with an Iceberg catalog in a temporary folder, shared by the tests here."""

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from tests.spark.session import open_test_session

    session = open_test_session(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()
