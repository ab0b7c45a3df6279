"""The generated pages of the reference are current and complete."""

import pytest

from cdclake.cli.main import commands
from scripts.reference_pages import FOLDER, PAGES, commands_page, pipeline_page


@pytest.mark.parametrize("file", PAGES)
def test_page_is_current(file):
    assert (FOLDER / file).read_text(encoding="utf-8") == PAGES[file](), "run `make docs`"


def test_commands_page_lists_every_command():
    sections = [line[3:] for line in commands_page().splitlines() if line.startswith("## ")]
    assert sections == list(commands())


@pytest.mark.parametrize(
    "row",
    [
        "| `version` | `1` | required | ",
        "| `snapshot.mode` | `initial`, `bulk` | `initial` | ",
        "| `readers` | list of `athena`, ",
        "| `NAME.columns.NAME.exclude` | boolean | `false` | ",
        "| `NAME.key` | list of text | required | ",
        "| `NAME.checks[].row_count.min` | whole number, 0 or more | | ",
        "| `domains.NAME.backup` | `failed`, `all` | that of `firehose` | ",
        "| `source.create.instance` | text | `db.t4g.medium` | ",
        "| `NAME.schedule` | text | `rate(1 hour)` | ",
    ],
)
def test_pipeline_page_shows_types_and_defaults(row):
    assert f"\n{row}" in pipeline_page()


def test_pipeline_page_shows_examples():
    assert " | `max_storage_gb: 1000` |\n" in pipeline_page()
    assert " | its keys below |\n" in pipeline_page()
