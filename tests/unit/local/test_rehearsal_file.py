"""A rehearsal reads the pipeline file, and never writes it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cdclake.config.resolve import load_plan
from cdclake.local import lifecycle
from cdclake.local.lake import declared_columns
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.local.rehearsal import rehearse
from cdclake.plan import Plan
from tests.unit.postgres.tables import actual

PIPELINE = """\
version: 1
name: shop
source: {database: shop}
policies: {new_columns: declare}
tables:
  public.orders:
    key: [id]
    columns:
      id: int
"""


class StreamingBeginsError(Exception):
    """End of the test: the components would start now."""


def test_undeclared_columns_are_not_written_into_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE)

    def stop(*_: object, **__: object) -> str:
        raise StreamingBeginsError

    def describe(home: Home, state: LakeState) -> object:
        return SimpleNamespace(plan=Plan.from_json(state.plan), dsn="")

    source = actual()  # with a column `number`
    monkeypatch.setattr(lifecycle, "up_bare", lambda *_: None)
    monkeypatch.setattr(lifecycle, "_bring_up", lambda *_: SimpleNamespace(source=None))
    monkeypatch.setattr(lifecycle, "existing_database", lambda *_: "shop")
    monkeypatch.setattr(lifecycle, "describe_lake", describe)
    monkeypatch.setattr("cdclake.local.lake.connector_offsets.offsets_topic", stop)
    monkeypatch.setattr("cdclake.local.rehearsal.run_local_script", lambda *_, **__: {})
    monkeypatch.setattr(declared_columns, "source_tables", lambda *_: {source.id: source})
    with pytest.raises(StreamingBeginsError):
        rehearse(Home(tmp_path), file, tmp_path / "a.sql", tmp_path / "b.sql")
    assert file.read_text() == PIPELINE
    with pytest.raises(StreamingBeginsError):  # as the real `up` would
        lifecycle.up(Home(tmp_path), load_plan(file), str(file), None)
    assert "number: integer" in file.read_text()
