"""The statements of a bulk load: chunks that share no row and miss none, names that are quoted."""

import re

import pytest

from cdclake.debezium.types import ARRAY_ELEMENTS, TYPES
from cdclake.plan import Column
from cdclake.postgres.bulk_read import chunks, create_slot, import_snapshot, lock_against_rewrites
from cdclake.postgres.event_values import NOT_LOADED, log_value
from tests.unit.postgres.tables import declared


def holds(condition: str, block: int) -> bool:
    """Whether a row in this block meets the condition."""
    low = re.search(r">= '\((\d+),0\)'", condition)
    high = re.search(r"< '\((\d+),0\)'", condition)
    return (low is None or block >= int(low[1])) and (high is None or block < int(high[1]))


@pytest.mark.parametrize("blocks", [0, 1, 8191, 8192, 8193, 100_000, 10**9])
def test_each_block_is_in_one_chunk(blocks):
    conditions = chunks(blocks)
    assert len(set(conditions)) == len(conditions) <= 4000
    edges = {int(edge) for c in conditions for edge in re.findall(r"\((\d+),0\)", c)}
    some = sorted(edges)[:: len(edges) // 100 + 1]
    for block in {0, blocks, blocks + 1, blocks + 10**6, *some, *(edge - 1 for edge in some)}:
        assert sum(holds(condition, block) for condition in conditions) == 1


def test_a_small_table_is_read_at_once():
    assert chunks(0) == chunks(8192) == ["true"]
    assert len(chunks(8193)) == 2


def test_a_name_is_a_name_whatever_it_holds():
    table = declared(schema='s"x', table="a'b")
    assert lock_against_rewrites(table) == 'SELECT FROM "s""x"."a\'b" LIMIT 0'
    slot = create_slot("cdclake_x", 160009)
    assert slot == "CREATE_REPLICATION_SLOT \"cdclake_x\" LOGICAL pgoutput (SNAPSHOT 'export')"
    assert create_slot("x", 170000).endswith("(SNAPSHOT 'export', FAILOVER true)")
    assert import_snapshot("0003-1B-1")[1] == "SET TRANSACTION SNAPSHOT '0003-1B-1'"


def test_the_snapshot_is_imported_before_anything_else():
    first, second, *_ = import_snapshot("x")
    assert first == "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    assert second == "SET TRANSACTION SNAPSHOT 'x'"


@pytest.mark.parametrize("base", sorted(TYPES.keys() - NOT_LOADED))
def test_every_type_is_read_from_its_own_column(base):
    for spelled in (base, *([f"{base}[]"] if base in ARRAY_ELEMENTS else [])):
        value = log_value(Column(source='a"b', name="a_b", type=spelled), declared())
        assert '"a""b"' in value
        assert "{" not in value.replace("'{\"x\":'", "")
