"""Grants that do nothing although PostgreSQL reports success: the preparation refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.errors import InputError
from cdclake.local.doctor import check_database
from cdclake.local.lake.source import prepare_source, remove_from_source
from cdclake.plan import Plan
from tests.local.source_database import OWNER, PASSWORD, proposed, role_dsn, run

pytestmark = pytest.mark.local

POLL = "    capture: {poll: {by: at, every: rate(1 day), overlap_minutes: 5}}\n"


@pytest.fixture
def app(database: str) -> Iterator[str]:
    """Return the DSN of a user with the documented rights, who owns `a` and nothing else."""
    name = f"app_of_{conninfo_to_dict(database)['dbname']}"
    run(
        database,
        f"CREATE ROLE {name} LOGIN CREATEROLE REPLICATION PASSWORD 'x'",
        f"GRANT CREATE ON DATABASE {conninfo_to_dict(database)['dbname']} TO {name}",
        "CREATE SCHEMA sales",
        f"GRANT USAGE, CREATE ON SCHEMA sales TO {name}",
        "CREATE TABLE sales.a (id int PRIMARY KEY)",
        f"ALTER TABLE sales.a OWNER TO {name}",
    )
    yield make_conninfo(database, user=name, password="x")
    run(database, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


def prepare(dsn: str, plan: Plan) -> None:
    prepare_source(dsn, plan, embedded=False, owner=OWNER, role_password=PASSWORD)


def refusal_of(dsn: str, plan: Plan) -> InputError:
    """Return the error of the preparation, which `doctor FILE --source` reports too."""
    with pytest.raises(InputError) as refused:
        prepare(dsn, plan)
    [found] = [each for each in check_database(dsn, plan, OWNER) if each.name == "source"]
    assert (found.detail, found.remedy) == (refused.value.message, refused.value.remedy)
    return refused.value


def is_untouched(database: str, plan: Plan) -> bool:
    """Check that neither our role nor our schema exists."""
    role = f"SELECT FROM pg_roles WHERE rolname = '{plan.source_object}'"
    schema = "SELECT FROM pg_namespace WHERE nspname = 'cdclake'"
    return run(database, role) == run(database, schema) == []


def test_a_schema_of_another_role_needs_a_grant_option(
    database: str, app: str, tmp_path: Path
) -> None:
    plan = proposed(database, tmp_path / "p.yaml")
    refused = refusal_of(app, plan)
    assert refused.message.startswith(f"schema sales: the role {plan.source_object} needs USAGE")
    assert is_untouched(database, plan)
    run(database, refused.remedy.partition("run in the source: ")[2])
    prepare(app, plan)
    prepare(app, plan)
    assert run(role_dsn(database, plan), "TABLE sales.a") == []
    remove_from_source(app, plan, OWNER)
    assert is_untouched(database, plan)


def test_a_role_or_everyone_with_the_right_needs_no_grant_option(
    database: str, app: str, tmp_path: Path
) -> None:
    plan = proposed(database, tmp_path / "p.yaml")
    run(database, "GRANT USAGE ON SCHEMA sales TO PUBLIC")
    prepare(app, plan)
    run(
        database,
        "REVOKE USAGE ON SCHEMA sales FROM PUBLIC",
        f"GRANT USAGE ON SCHEMA sales TO {plan.source_object}",
    )
    prepare(app, plan)
    assert run(role_dsn(database, plan), "TABLE sales.a") == []
    remove_from_source(database, plan, OWNER)


def test_a_database_that_public_may_not_connect_to_needs_a_grant_option(
    database: str, app: str, tmp_path: Path
) -> None:
    plan = proposed(database, tmp_path / "p.yaml")
    name, user = plan.source_database, conninfo_to_dict(app)["user"]
    run(
        database,
        "GRANT USAGE ON SCHEMA sales TO PUBLIC",
        f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {name} TO {user}",
    )
    refused = refusal_of(app, plan)
    assert refused.message.startswith(f"database {name}: the role {plan.source_object} needs CONN")
    assert is_untouched(database, plan)
    run(database, refused.remedy.partition("run in the source: ")[2])
    prepare(app, plan)
    assert run(role_dsn(database, plan), "TABLE sales.a") == []
    remove_from_source(app, plan, OWNER)


def hiding(column: str) -> Callable[[str], str]:
    """Return an edit that polls `sales.b`, without this column."""

    def edit(text: str) -> str:
        text = text.replace(f"{column}: text", f"{column}: {{exclude: true}}")
        before, table, after = text.partition("  sales.b:\n")
        return before + table + POLL + after

    return edit


@pytest.mark.parametrize("hidden", ["nothing", "secret"])
def test_a_polled_table_of_another_role_needs_a_grant_option(
    database: str, app: str, tmp_path: Path, hidden: str
) -> None:
    user = conninfo_to_dict(app)["user"]
    run(
        database,
        "GRANT USAGE ON SCHEMA sales TO PUBLIC",
        "CREATE TABLE sales.b (id int PRIMARY KEY, at timestamptz NOT NULL, secret text)",
        f"GRANT SELECT ON sales.b TO {user}",
    )
    plan = proposed(database, tmp_path / "p.yaml", hiding(hidden))
    assert len(plan.polled) == 1
    refused = refusal_of(app, plan)
    assert refused.message.startswith(f"sales.b: the role {plan.source_object} needs SELECT")
    assert is_untouched(database, plan)
    if hidden == "nothing":
        run(database, refused.remedy.partition("run in the source: ")[2])
    else:
        columns = "id, at, ctid, tableoid, xmin, cmin"
        run(database, f"GRANT SELECT ({columns}) ON sales.b TO {user} WITH GRANT OPTION")
    prepare(app, plan)
    role = role_dsn(database, plan)
    assert run(role, "SELECT id, at, ctid FROM sales.b") == []
    if hidden == "secret":
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(role, "SELECT secret FROM sales.b")
    remove_from_source(app, plan, OWNER)


def test_a_right_that_is_taken_back_at_once_undoes_the_preparation(
    database: str, tmp_path: Path
) -> None:
    """Checked after the grants: here the database's own trigger revokes one of them."""
    run(database, "CREATE SCHEMA sales", "CREATE TABLE sales.a (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    revoke = f"REVOKE USAGE ON SCHEMA sales FROM {plan.source_object}"
    run(
        database,
        "CREATE FUNCTION revoke() RETURNS event_trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {revoke}; END $$",
        "CREATE EVENT TRIGGER revoking ON ddl_command_end WHEN TAG IN ('GRANT')"
        " EXECUTE FUNCTION revoke()",
    )
    with pytest.raises(InputError, match=r"^schema sales: .* needs USAGE on it"):
        prepare(database, plan)
    assert is_untouched(database, plan)
    run(database, "DROP EVENT TRIGGER revoking")
    prepare(database, plan)
    remove_from_source(database, plan, OWNER)
