"""The example's SQL file has the tables that the demo makes."""

from pathlib import Path

from cdclake.local.demo.shop_tables import DDL
from cdclake.postgres.sql_script import split_script

FILE = Path(__file__).resolve().parents[3] / "pipelines" / "shop.sql"


def test_the_file_has_the_demos_tables() -> None:
    def statements(text: str) -> list[str]:
        return [each.sql for each in split_script(text, "f")]

    assert statements(FILE.read_text("utf-8")) == statements(DDL)
    assert len(statements(DDL)) == 5
