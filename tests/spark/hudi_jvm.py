"""Hudi in the tests: a process whose JVM has Hudi's jars and settings, and runs tests.

The session of the other tests must have neither: Hudi needs Kryo from the start of a session.
"""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import wraps
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.spark.session import PROJECT, open_test_session

JARS = PROJECT / "jars" / "hudi"
needs_hudi = pytest.mark.skipif(not JARS.is_dir(), reason="no jars/hudi: run `make hudi-jars`")
_session: list[SparkSession] = []


@pytest.fixture(scope="module")
def hudi_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    """One process for the tests of a file."""
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_start, initargs=(warehouse,)) as pool:
        yield pool
        pool.submit(_stop).result()


def in_hudi_jvm(test: Callable[..., None]) -> Callable[..., None]:
    """Have the process run the test, whose first argument is its Spark session."""

    @wraps(test)
    def run(hudi_jvm: Executor, **arguments: Any) -> None:
        hudi_jvm.submit(_call, test.__module__, test.__name__, arguments).result()

    parameters = list(inspect.signature(test).parameters.values())
    pool = inspect.Parameter("hudi_jvm", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([pool, *parameters[1:]])  # type: ignore[attr-defined]
    return run


def _call(module: str, name: str, arguments: Mapping[str, Any]) -> None:
    test = getattr(importlib.import_module(module), name)
    test.__wrapped__(_session[0], **arguments)


def _start(warehouse: str) -> None:
    import boto3
    from moto import mock_aws

    from cdclake.hudi_copy import HUDI_CONF

    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
        del os.environ[name]  # of a lake that the test's process has opened
    os.environ |= {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    mock_aws().start()
    boto3.client("glue").create_database(DatabaseInput={"Name": "cdc"})
    _session.append(open_test_session(warehouse, jars=f"{JARS}/*", conf=HUDI_CONF))


def _stop() -> None:
    _session.pop().stop()


def rust_rows(
    folder: str,
    columns: Sequence[str],
    options: Mapping[str, str] | None = None,
    *,
    as_of: str | None = None,
    since: str | None = None,
) -> Iterator[tuple[Any, ...]]:
    """The rows of a Hudi table as hudi-rs reads them: now, at an instant, or written since one."""
    from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

    table = HudiTableBuilder.from_base_uri(folder).with_options(dict(options or {})).build()
    read = HudiReadOptions()
    if as_of is not None:
        read = read.with_as_of_timestamp(as_of)
    if since is not None:
        read = read.with_query_type(HudiQueryType.Incremental).with_start_timestamp(since)
    for batch in table.read(read):
        for row in pa.record_batch(batch).to_pylist():
            yield tuple(row[column] for column in columns)


def spark_rows(
    folder: str, columns: Sequence[str], read: Mapping[str, str], client: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    """The rows of a Hudi table in an S3, read by the process's session with this client."""
    session = _session[0]
    for name, value in client.items():
        session.sparkContext._jsc.hadoopConfiguration().set(f"fs.s3a.{name}", value)
    found = session.read.format("hudi").options(**read).load(folder).select(*columns).collect()
    return sorted((tuple(row) for row in found), key=repr)
