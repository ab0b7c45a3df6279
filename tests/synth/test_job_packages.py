"""Each deployed job gets the packages that it imports and Glue does not have."""

from __future__ import annotations

import sys

import pytest

from cdclake.deployed_jobs import JOBS
from tests.source_tree import import_graph, imported_modules, module_of, sources
from tests.synth.deployments import Synthesized

# Source: Glue's developer guide, "Python modules already provided in AWS Glue", Glue 5.0.
IN_GLUE = {"awsglue", "boto3", "botocore", "numpy", "pandas", "py4j", "pyarrow", "pyspark"}


def foreign_packages(job: str) -> set[str]:
    """The packages that the job's script imports, directly or not, and that Glue lacks."""
    texts = sources()
    graph, by_module = import_graph(texts), {module_of(path): text for path, text in texts.items()}
    seen: set[str] = set()
    waiting, found = [f"cdclake.jobs.{job}"], set()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        found |= {name.split(".")[0] for name in imported_modules(by_module.get(module, ""))}
        waiting += [other for other in graph.get(module, ()) if other.startswith("cdclake")]
    return found - IN_GLUE - {"cdclake", *sys.stdlib_module_names}


def test_jobs_import_packages_that_glue_lacks() -> None:
    # It decodes quarantined events of rows that are to be erased.
    assert foreign_packages("apply_changes") == {"fastavro", "mmh3", "msgspec"}
    assert {"msgspec", "mmh3"} <= foreign_packages("stream_changes")
    # It decodes the events that rules withhold, and those that Firehose has not delivered.
    assert foreign_packages("verify_tables") == {
        "duckdb", "fastavro", "mmh3", "msgspec", "psycopg",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["created", "governed"])
def test_each_job_gets_the_packages_that_it_imports(
    variants: dict[str, Synthesized], name: str
) -> None:
    deployed = {
        each["Properties"]["Name"].removeprefix("shop-"): each["Properties"]["DefaultArguments"]
        for each in variants[name].resources("AWS::Glue::Job")
    }
    assert {"apply_changes", "maintain_tables", "stream_changes"} <= deployed.keys() <= set(JOBS)
    for job, arguments in deployed.items():
        if foreign_packages(job):
            assert "--additional-python-modules" in arguments, job
            assert arguments["--python-modules-installer-option"] == "--no-index"
