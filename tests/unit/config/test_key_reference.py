"""Reference of the pipeline file's keys: complete, with examples that are part of valid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.deployment import load_deployment
from cdclake.config.key_examples import FOLDER, example_of
from cdclake.config.key_reference import DocumentedKey, documented_keys, find_key
from cdclake.config.resolve import load_plan
from cdclake.config.yaml_reader import parse_document, read_document
from cdclake.errors import InputError
from tests.unit.config.pipelines import VALID, top

KEYS = documented_keys()


def is_documented(key: DocumentedKey) -> bool:
    example = example_of(key.path)
    if example is None or not (key.type and key.meaning):
        return False
    is_exact = read_document(example.file).get(*example.place) == example.value
    return is_exact and not parse_document(example.block()).problems


def test_every_key_is_documented_with_an_example_of_a_file() -> None:
    lacking = [key.path for key in KEYS if not is_documented(key)]
    assert (len(KEYS) > 200, lacking) == (True, []), "add them to a file in pipelines/reference"


@pytest.mark.parametrize(
    "file", sorted({found.file for key in KEYS if (found := example_of(key.path))}), ids=str
)
def test_file_of_examples_is_valid(file) -> None:
    environments = read_document(file).mapping("environments")
    for environment in (None, *environments):
        assert load_plan(file, environment)


def test_example_reads_as_the_value_that_it_shows() -> None:
    connector = example_of("aws.connector")
    assert connector is not None
    assert connector.inline() == "connector: off"
    assert parse_document(connector.block()).values == {"aws": {"connector": "off"}}


def test_an_items_example_keeps_the_list() -> None:
    example = example_of("tables.NAME.checks[].row_count.min")
    assert example is not None
    values = {"checks": [{"row_count": {"min": 1}}]}
    assert parse_document(example.block()).values == {"tables": {"public.orders": values}}


def test_defaults_of_a_deployment_are_named(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(top("aws: {size: trial}"))
    trial, apply = load_deployment(file).plan, find_key("schedules.apply").meaning
    assert f"trial` the default is `{trial.schedules['apply']}`" in apply
    file.write_text(VALID + "    delivery: firehose\n")
    assert (trial.mode, load_deployment(file).plan.mode) == ("scheduled", "scheduled")
    mode = find_key("stream.mode").meaning
    assert "scheduled" in mode and "`aws: size: trial`" in mode and "`delivery: stream`" in mode
    size = find_key("aws.size").meaning
    assert "`stream: mode`" in size and "`schedules: apply`" in size


def test_keys_are_found_by_path_and_by_unique_end() -> None:
    assert find_key("policies.new_columns").path == "policies.new_columns"
    assert find_key("checks.freshness").path == "tables.NAME.checks[].freshness"
    assert find_key("new_columns").to_json()["example"] == "policies:\n  new_columns: declare"


def test_unknown_and_ambiguous_keys_are_refused() -> None:
    with pytest.raises(InputError, match="no key 'new_colums'") as unknown:
        find_key("new_colums")
    assert "'new_columns'" in unknown.value.remedy
    with pytest.raises(InputError, match="keys end with 'seconds'") as several:
        find_key("seconds")
    assert "firehose.buffer.seconds" in several.value.remedy


def test_files_of_examples_are_packaged() -> None:
    assert (FOLDER / "reference" / "stream.yaml").is_file()
