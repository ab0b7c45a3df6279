"""What the connector is told of renamed columns."""

from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.plan import Column, Plan, Table

ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)


def test_a_renamed_column_is_taken_and_masked_under_all_its_names() -> None:
    columns = (
        Column(source="id", name="id", type="bigint"),
        Column(source="email", name="mail", type="text", mask="hash", renamed_from=("mail",)),
    )
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",), columns=columns
    )
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    config = connector_config(plan, ADDRESS, epoch=1, mask_salt="salt")
    both = "(?-i)public[.]t[.]email,(?-i)public[.]t[.]mail"
    assert config["column.include.list"].endswith(f"(?-i)public[.]t[.]id,{both}")
    assert config["column.mask.hash.v2.SHA-256.with.salt.salt"] == both
