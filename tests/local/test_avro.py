"""Avro with a schema registry on the real lake, over changed tables and a restart."""

from pathlib import Path

import pytest

from tests.local.running import SHOP, SHOP_SQL, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]


def avro_shop(folder: Path, registry: str) -> Path:
    """Write the shop's pipeline file with Avro into this folder."""
    added = f"  format: avro\n  registry: {registry}\n"
    text = SHOP.read_text()
    at = text.index("  database:", text.index("source:"))
    end = text.index("\n", at) + 1
    path = folder / "avro.yaml"
    path.write_text(text[:end] + added + text[end:])
    return path


def test_glue(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake:
        pipeline = avro_shop(tmp_path, "glue")
        with lake.connect() as connection:
            connection.execute(SHOP_SQL)
        lake.run("up", str(pipeline))
        lake.assert_equal()
