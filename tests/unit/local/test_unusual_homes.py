"""Paths of a home with a space, a percent sign and non-ASCII characters."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cdclake.debezium.worker import properties
from cdclake.local.components import kafka
from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.kafka import Broker
from cdclake.local.lake import spark_jobs
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.credentials import aws_keys
from cdclake.local.process.home import Home
from tests.unit.postgres.tables import plan


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "My 50%20 Läke")
    found.create()
    return found


def lake_of(home: Home) -> LocalLake:
    keys = aws_keys(home)
    endpoints = Endpoints(
        None, Broker("127.0.0.1:9", keys), ConnectApi("", keys), "http://127.0.0.1:7", "", "", keys
    )
    return LocalLake(home=home, state=LakeState(), plan=plan(), endpoints=endpoints, dsn="")


def test_spark_splits_javas_options_where_they_end(home: Home) -> None:
    conf = spark_jobs._local_conf(lake_of(home), "stream", "1g", s3a=False)
    options = shlex.split(conf["spark.driver.extraJavaOptions"])
    assert f"@{home.run}/java-spark.args" in options
    assert all(option.startswith(("-", "@")) for option in options)


def test_the_checkpoint_is_in_the_home(home: Home) -> None:
    argv = spark_jobs.stream_spec(lake_of(home)).argv
    given = argv[argv.index("--checkpoint") + 1]
    assert given == f"file://{home.path}/data/checkpoints/shop"


def test_java_reads_the_brokers_folder_from_its_settings(home: Home) -> None:
    home.private_data(kafka.NAME)
    (home.data(kafka.NAME) / "meta.properties").touch()
    kafka.prepare(home, 1, 2)
    lines = kafka.config_file(home).read_bytes().decode("ascii").splitlines()
    [folder] = [line for line in lines if line.startswith("log.dirs=")]
    assert "/My 50%20 L\\u00e4ke/" in folder


def test_properties_escape_backslashes_and_non_ascii_characters() -> None:
    settings = {"a": 'x\\y="1"', "b": 2, "c": "😀"}
    assert properties(settings) == 'a=x\\\\y="1"\nb=2\nc=\\ud83d\\ude00\n'
