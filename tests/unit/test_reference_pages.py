"""The generated pages of the reference are current and complete."""

import re

import pytest

from cdclake import naming
from cdclake.cli.main import commands
from cdclake.iceberg.schemas import (
    CHANGES_COLUMNS,
    QUARANTINE_COLUMNS,
    SHARED_COLUMNS,
    STATE_COLUMNS,
)
from scripts.reference_pages import FOLDER, PAGES, commands_page, pipeline_page
from tests.source_tree import sources

# Set by cdclake for its own processes, or by tests.
INTERNAL = {
    "CDCLAKE_AWS_FAULTS", "CDCLAKE_COMPONENT", "CDCLAKE_FAIL_POINT", "CDCLAKE_FIREHOSE_TROUBLE",
    "CDCLAKE_KEEPER", "CDCLAKE_PLUGINS",
}  # fmt: skip
LAKE = (FOLDER / "reference" / "lake.md").read_text()


@pytest.mark.parametrize("file", PAGES)
def test_page_is_current(file):
    assert (FOLDER / file).read_text(encoding="utf-8") == PAGES[file](), "run `make docs`"


def test_commands_page_lists_every_command():
    sections = [line[3:] for line in commands_page().splitlines() if line.startswith("## ")]
    assert sections == ["Environment variables", *commands()]


def test_commands_page_lists_every_environment_variable():
    product = "".join(sources("cdclake", "glue_jobs", "stacks", "lambda").values())
    read = set(re.findall(r"\bCDCLAKE_[A-Z_]+", product))
    listed = set(re.findall(r"`(CDCLAKE_[A-Z_]+)`", commands_page().partition("## new")[0]))
    assert listed == read - INTERNAL
    assert read >= INTERNAL


def test_lake_page_lists_every_column_that_cdclake_adds():
    added = (*SHARED_COLUMNS, *CHANGES_COLUMNS, *STATE_COLUMNS)
    section = LAKE.partition("## Columns that cdclake adds")[2].partition("## Types")[0]
    assert [name for name, _ in added if f"`{name}`" not in section] == []


def test_lake_page_lists_the_columns_of_the_quarantine():
    section = LAKE.partition(f"## {naming.QUARANTINE}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| [a-z]", section, re.M)
    assert re.findall(r"`(\w+)`", " ".join(rows)) == [name for name, _ in QUARANTINE_COLUMNS]


@pytest.mark.parametrize(
    "row",
    [
        "| `version` | `1` | required | ",
        "| `snapshot.mode` | `initial`, `bulk` | `initial` | ",
        "| `readers` | list of `athena`, ",
        "| `NAME.columns.NAME.exclude` | boolean | `false` | ",
        "| `NAME.key` | list of text | required | ",
        "| `NAME.checks[].row_count.min` | whole number, 0 or more | | ",
        "| `domains.NAME.retry_seconds` | whole number, 0 to 7200 | that of `firehose` | ",
        "| `source.create.instance` | text | `db.t4g.medium` | ",
        "| `NAME.schedule` | text | `rate(1 hour)` | ",
    ],
)
def test_pipeline_page_shows_types_and_defaults(row):
    assert f"\n{row}" in pipeline_page()


def test_pipeline_page_shows_examples():
    assert " | `max_storage_gb: 1000` |\n" in pipeline_page()
    assert " | its keys below |\n" in pipeline_page()
