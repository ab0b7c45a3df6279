"""The demo over databases that others made: loaded, streamed, changed and compared."""

from pathlib import Path

import pytest

from tests.given_folders import given_folder, needs_files
from tests.local.running import lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("database", "table", "events"),
    [
        pytest.param(
            "pagila",
            "film_actor",
            {"inserts": 0, "updates": 0, "deletes": 5},
            marks=needs_files("pagila"),
        ),
        pytest.param(
            "moma",
            "artworks",
            {"inserts": 1, "updates": 5, "deletes": 1},
            marks=needs_files("moma"),
        ),
    ],
)
def test_a_sample_database_is_streamed_and_changed(
    tmp_path: Path, database: str, table: str, events: dict[str, int]
) -> None:
    folder = str(given_folder(database))
    with lake_in(tmp_path) as lake:
        answer = lake.run("demo", "--database", database, "--data", folder)
    assert answer["ok"]
    assert answer["events"] > 0 and answer["events_per_s"] > 0
    assert 0 < answer["freshness_p50_ms"] <= answer["freshness_p95_ms"]
    assert 0 < answer["seconds_to_first_row"] < answer["seconds_total"]
    found = next(each for each in answer["tables"] if each["table"] == table)
    assert {kind: found[kind] for kind in events} == events
    assert found["snapshot"] + found["inserts"] - found["deletes"] == found["lake_rows"]
