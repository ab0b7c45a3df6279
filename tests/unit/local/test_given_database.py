"""Databases that the demo loads: their files, and the statements that change them."""

from pathlib import Path

import pytest

from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.local.demo.given_database import GIVEN, GivenDatabase, numbered


@pytest.mark.parametrize("database", GIVEN.values(), ids=list(GIVEN))
def test_a_folder_without_a_file_is_refused_with_its_origin(
    tmp_path: Path, database: GivenDatabase
) -> None:
    (tmp_path / database.files[0]).touch()
    with pytest.raises(InputError, match=database.files[1]) as refused:
        database.check(tmp_path)
    assert database.origin.split()[0] in refused.value.remedy
    assert database.folder_key in refused.value.remedy


@pytest.mark.parametrize("database", GIVEN.values(), ids=list(GIVEN))
def test_its_statements_change_tables_that_are_streamed(database: GivenDatabase) -> None:
    plan = load_plan(database.pipeline)
    assert plan.source_database == database.name
    declared = {table.table for table in plan.tables}
    changes = database.changes()
    for statement in changes:
        words = statement.sql.replace("public.", "").split()
        assert declared & set(words[1:3]), statement.sql
    assert len(list(numbered(changes))) == len(changes) >= 8
