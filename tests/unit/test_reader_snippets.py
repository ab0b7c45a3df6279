"""Programs of `cdclake connect`; `tests/local/test_connect.py` runs the local ones on a lake."""

from __future__ import annotations

import ast
import re

import pytest

from cdclake.reader_snippets import SNIPPETS, LocalAccess, SnippetTarget

LOCAL = SnippetTarget(
    database="cdc_iceberg",
    table="orders",
    region="us-east-1",
    local=LocalAccess(
        endpoint="http://127.0.0.1:5555", credentials="/lake/clients/aws.ini", jars="/jars/*"
    ),
)
DEPLOYED = SnippetTarget(database="cdc_iceberg", table="orders", region="eu-west-1")
# Properties in the documentation of Trino 476: Iceberg connector, Glue catalog and S3 support.
# Copied by hand; the snippet itself has never been run.
TRINO_PROPERTIES = {
    *("connector.name", "iceberg.catalog.type", "fs.native-s3.enabled"),
    *("hive.metastore.glue.region", "hive.metastore.glue.endpoint-url"),
    *("hive.metastore.glue.aws-access-key", "hive.metastore.glue.aws-secret-key"),
    *("s3.endpoint", "s3.region", "s3.path-style-access", "s3.aws-access-key", "s3.aws-secret-key"),
}


@pytest.mark.parametrize("target", [LOCAL, DEPLOYED], ids=["local", "deployed"])
@pytest.mark.parametrize("engine", [name for name in SNIPPETS if name != "trino"])
def test_snippet_is_a_program_that_names_lake_and_table(engine: str, target: SnippetTarget) -> None:
    snippet = SNIPPETS[engine](target)
    ast.parse(snippet)
    assert "cdc_iceberg" in snippet and "orders" in snippet and target.region in snippet


@pytest.mark.parametrize("engine", SNIPPETS)
def test_snippet_of_a_deployment_names_nothing_local(engine: str) -> None:
    deployed = SNIPPETS[engine](DEPLOYED)
    assert "127.0.0.1" not in deployed and "aws.ini" not in deployed
    assert "127.0.0.1:5555" in SNIPPETS[engine](LOCAL)


@pytest.mark.parametrize("target", [LOCAL, DEPLOYED], ids=["local", "deployed"])
def test_trino_snippet_has_only_known_properties(target: SnippetTarget) -> None:
    lines = SNIPPETS["trino"](target).splitlines()
    pairs = [line.partition("=") for line in lines if not line.startswith("#")]
    names = [name for name, _, _ in pairs]
    assert set(names) <= TRINO_PROPERTIES and len(names) == len(set(names))
    assert all(value for _, _, value in pairs)
    comment = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
    assert "never been run" in comment and "Trino 476" in comment
    keys = [value for name, _, value in pairs if name.endswith("-key")]
    assert all(re.fullmatch(r"\$\{ENV:[A-Z_]+\}", value) for value in keys)
