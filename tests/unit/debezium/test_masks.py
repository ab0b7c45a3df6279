"""What the connector is told of masked columns."""

from cdclake.debezium.connector import MASKS, SALT, SourceAddress, connector_config
from cdclake.plan import Column, Plan, Table

ADDRESS = SourceAddress(
    host="h", port=5432, database="d", user="u", password="${p}", sslmode="prefer"
)


def with_columns(*columns: Column) -> dict[str, str]:
    """The connector's settings for one table of these columns, beside its key."""
    key = Column(source="id", name="id", type="bigint")
    table = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",),
        columns=(key, *columns),
    )  # fmt: skip
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    return connector_config(plan, ADDRESS, epoch=1, mask_salt="${salt}", max_queue_bytes=1)


def test_a_renamed_column_is_taken_and_masked_under_all_its_names() -> None:
    config = with_columns(
        Column(source="email", name="mail", type="text", mask="hash", renamed_from=("mail",))
    )
    assert config["column.include.list"].endswith(",(?-i)public[.]t[.](?:id|email|mail)")
    assert config["cdclake.mask.hash"] == "(?-i)public[.]t[.](?:email|mail)"


def test_masks_are_our_converters_and_none_is_debeziums() -> None:
    config = with_columns(
        Column(source="email", name="email", type="text", mask="hash"),
        Column(source="phone", name="phone", type="citext", mask="truncate", truncate_to=3),
        Column(source="zip", name="zip", type="text", mask="truncate", truncate_to=3),
    )
    # Debezium's masks run after its placeholder is in, and pass citext unhashed.
    assert not [name for name in config if name.startswith("column.") and "include" not in name]
    assert {name: value for name, value in config.items() if "mask" in name} == {
        "cdclake.mask.type": "cdclake.connect.MaskConverter",
        "cdclake.mask.placeholder": config["unavailable.value.placeholder"],
        "cdclake.mask.salt.secret": "${salt}",
        "cdclake.mask.hash": "(?-i)public[.]t[.]email",
        "cdclake.mask.truncate.3": "(?-i)public[.]t[.](?:phone|zip)",
    }
    assert config["converters"] == "cdclake.mask"


def test_every_kind_of_mask_has_its_setting() -> None:
    config = with_columns(
        Column(source="tax", name="tax", type="text", mask="token"),
        Column(source="born", name="born", type="date", mask="month"),
        Column(source="name", name="name", type="text", mask="redact"),
        Column(source="age", name="age", type="integer", mask="null"),
    )
    assert config[SALT] == "${salt}"
    for kind, column in (("token", "tax"), ("month", "born"), ("redact", "name"), ("null", "age")):
        assert config[f"{MASKS}.{kind}"] == f"(?-i)public[.]t[.]{column}"


def test_a_salt_is_given_only_to_hashes() -> None:
    cut = with_columns(Column(source="a", name="a", type="text", mask="truncate", truncate_to=3))
    assert SALT not in cut and cut["converters"] == MASKS
    assert not [name for name in with_columns() if MASKS in name or name == "converters"]


def test_arrays_with_values_that_debezium_cannot_convert_are_ours() -> None:
    config = with_columns(
        Column(source="prices", name="prices", type="numeric[]", renamed_from=("costs",)),
        Column(source="moods", name="moods", type="enum[]"),
        Column(source="counts", name="counts", type="integer[]"),
        Column(source="email", name="email", type="text", mask="hash"),
        Column(source="price", name="price", type="numeric"),
    )
    assert config["converters"] == "cdclake.mask,cdclake.arrays"
    assert config["cdclake.arrays.type"] == "cdclake.connect.ArrayConverter"
    assert config["cdclake.arrays.columns"] == "(?-i)public[.]t[.](?:prices|costs|moods)"
    assert not [name for name in with_columns() if "arrays" in name]
