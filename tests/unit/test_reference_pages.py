"""docs/reference: the generated pages are current and complete."""

import pytest

from cdclake.cli.main import commands
from scripts.reference_pages import FOLDER, PAGES, commands_page, pipeline_file_page


@pytest.mark.parametrize("file", PAGES)
def test_page_is_current(file):
    assert (FOLDER / file).read_text(encoding="utf-8") == PAGES[file](), "run `make docs`"


def test_commands_page_lists_every_command():
    sections = [line[3:] for line in commands_page().splitlines() if line.startswith("## ")]
    assert sections == list(commands())


@pytest.mark.parametrize(
    "row",
    [
        "| `version` | required | |",
        "| `snapshot.mode` | `initial` | `bulk` |",
        "| `NAME.columns.NAME.exclude` | `false` | |",
        "| `NAME.key` | required | |",
        "| `domains.NAME.backup` | that of `firehose` | `failed`, `all` |",
        "| `source.create.instance` | `db.t4g.medium` | |",
    ],
)
def test_pipeline_file_page_shows_defaults_and_values(row):
    assert f"\n{row}" in pipeline_file_page()
