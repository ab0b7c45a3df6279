"""The recorded scripts through a whole lake, from its own PostgreSQL to what `verify` says."""

import pytest

from tests.local.running import lake_in
from tests.recorded.recording import FOLDER
from tests.recorded.script import Directive, Statement, steps

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

# Rows that differ, by table; of all others none. What has the wrong identity is refused.
DIFFERENT = {"changes": {}, "toast": {"unprotected": 1}}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_lake_holds_all_but_what_is_refused(tmp_path, name: str) -> None:
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            for step in steps((FOLDER / f"{name}.sql").read_text()):
                match step:
                    case Statement(sql):
                        connection.execute(sql.encode())
                    case Directive("stream"):
                        lake.run("up", str(FOLDER / f"{name}.yaml"))
        different = DIFFERENT[name]
        report = lake.run("verify", expect=1 if different else 0)
        assert all((t["missing"], t["extra"]) == (0, 0) for t in report["tables"])
        found = {t["table"]: t["different"] for t in report["tables"] if t["different"]}
        assert found == different
        refused = sum(different.values())
        assert lake.sql("select count(*) from cdclake_quarantine") == [[refused]]
