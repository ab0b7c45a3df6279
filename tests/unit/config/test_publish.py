"""Hudi copies in the pipeline file: what they are in the plan, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import read_document
from cdclake.errors import InputError
from cdclake.hudi_copy import HudiCopy
from cdclake.plan import Plan

FILE = """\
version: 1
name: moma
source: {{database: moma}}
tables:
  public.Artists:
    key: [artist_id]
    columns:
      {{artist_id: bigint, Nationality: text, height: double precision,
      secret: {{type: text, exclude: true}}}}
    publish:
      - hudi: {{{first}}}
      - hudi: {{{second}}}
  public.artworks:
    key: [object_id]
    columns: {{object_id: bigint, {column}: text}}
derived:
  {derived}: {{sql: SELECT object_id FROM artworks_current, key: [object_id]}}
"""


def file(tmp_path: Path, **fields: str) -> Path:
    given = {
        "first": "partition_by: Nationality",
        "second": "name: artists_mor, type: mor, schedule: rate(15 minutes)",
        "column": "title",
        "derived": "other",
    }
    path = tmp_path / "pipeline.yaml"
    path.write_text(FILE.format(**{**given, **fields}))
    return path


def test_copies_are_in_the_plan(tmp_path: Path) -> None:
    plan = load_plan(file(tmp_path))
    [table, _] = plan.tables
    first, second = plan.copies
    assert first == HudiCopy(
        name=f"{table.name}_hudi",
        table=table.name,
        type="cow",
        partition_by=table.columns[1].name,
        schedule="rate(1 hour)",
    )
    assert (second.name, second.partition_by, second.schedule) == (
        "artists_mor", None, "rate(15 minutes)",
    )  # fmt: skip
    assert first.entries == (first.name,)
    assert second.entries == ("artists_mor_ro", "artists_mor_rt")
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.copy("artists_mor") is second
    with pytest.raises(InputError, match="the file has no copy 'artworks_hudi'"):
        plan.copy("artworks_hudi")


@pytest.mark.parametrize(
    ("fields", "line", "message", "remedy"),
    [
        ({"first": "partition_by: nationalty"}, 11, "not declared", "'Nationality'"),
        (
            {"first": "partition_by: secret"},
            11,
            "the excluded 'secret'",
            "a column that is not excluded",
        ),
        ({"first": "partition_by: height"}, 11, "cannot name folders", "text, whole numbers"),
        ({"first": "name: artworks"}, 11, "already has 'artworks'", "another `name:`"),
        ({"first": "name: artworks_current"}, 11, "of 'public.artworks'", "another `name:`"),
        ({"first": "name: cdclake_quarantine"}, 11, "of 'cdclake'", "another `name:`"),
        ({"derived": "artists_mor_ro"}, 12, "already has 'artists_mor_ro'", "another `name:`"),
        ({"first": "name: artists_mor"}, 12, "of 'a copy of public.Artists'", "another `name:`"),
        ({"first": "name: Artists"}, 11, "invalid lake name 'Artists'", "lowercase"),
        ({"first": "type: c"}, 11, "'c'", "`cow` or `mor`"),
        ({"second": "name: b, schedule: hourly"}, 12, "invalid schedule", "rate("),
    ],
)
def test_a_copy_is_refused(
    tmp_path: Path, fields: dict[str, str], line: int, message: str, remedy: str
) -> None:
    [found, *_] = find_problems(read_document(file(tmp_path, **fields)))
    assert found.line == line
    assert message in found.message and remedy in found.remedy


def test_a_column_with_a_name_of_hudis_is_refused(tmp_path: Path) -> None:
    text = file(tmp_path).read_text().replace("height", "_hoodie_record_key")
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    [found] = find_problems(read_document(path))
    assert "Hudi uses" in found.message and "exclude: true" in found.remedy


@pytest.mark.parametrize("name", ["artworks_sink", "artworks"])
def test_a_copy_takes_no_name_of_a_sinks_table(tmp_path: Path, name: str) -> None:
    written = file(tmp_path, first=f"name: {name}_hudi", second=f"name: {name}")
    sinks = "  lake: {plugin: iceberg-sink, tables: [public.artworks, [], public.none]}\n"
    written.write_text(f"{written.read_text()}connectors:\n{sinks}")
    found = [each.message for each in find_problems(read_document(written)) if each.line == 12]
    owner = "connectors: lake" if name == "artworks_sink" else "public.artworks"
    assert found == [f"the lake already has {name!r}, of {owner!r}"]
