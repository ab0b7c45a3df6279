"""Search path of polled queries: the pipeline's role finds names as the login that prepares."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.jobs.runtime.source import connect
from cdclake.local.lake.source import check_source, prepare_source, remove_from_source
from cdclake.plan import Plan
from cdclake.postgres.poll_queries import relation, search_path
from tests.local.source_database import OWNER, PASSWORD, role_dsn, run

pytestmark = pytest.mark.local

FILE = """
version: 1
name: {name}
source: {{database: {name}}}
tables:
  public.orders: {{key: [id], columns: {{id: integer}}}}
  public.pairs:
    key: [id]
    columns: {{id: integer, email: citext, at: timestamptz}}
    capture:
      poll:
        by: at
        overlap_minutes: 15
        query: SELECT a.id, a.email, b.at FROM public.a JOIN public.b ON a.email = b.email
"""


class Shop:
    """Database whose administrator is no superuser, and finds citext in the schema `place`."""

    def __init__(self, superuser: str, folder: Path, place: str, owner: str = "") -> None:
        self.name = str(conninfo_to_dict(superuser)["dbname"])
        self.superuser, self.user = superuser, f"{self.name}_admin"
        place = place.format(user=self.user)
        run(
            superuser,
            f"CREATE ROLE {self.user} LOGIN CREATEROLE REPLICATION PASSWORD '{PASSWORD}'",
            f"GRANT CREATE ON DATABASE {self.name} TO {self.user}",
            f"CREATE SCHEMA {place} AUTHORIZATION {owner or self.user}",
            f"GRANT USAGE ON SCHEMA {place} TO {self.user}",
            f"CREATE EXTENSION citext SCHEMA {place}",
            "CREATE TABLE orders (id int PRIMARY KEY)",
            f"CREATE TABLE a (id int, email {place}.citext)",
            f"CREATE TABLE b (email {place}.citext, at timestamptz)",
            "INSERT INTO a VALUES (1, 'Ann@example.org')",
            "INSERT INTO b VALUES ('ann@example.org', now())",
            *(f"ALTER TABLE {table} OWNER TO {self.user}" for table in ("orders", "a", "b")),
            f"ALTER ROLE {self.user} IN DATABASE {self.name}"
            ' SET search_path = "$user", public, extensions, nowhere',
        )
        file = folder / "pipeline.yaml"
        file.write_text(FILE.format(name=self.name), encoding="utf-8")
        self.plan: Plan = load_plan(file)

    @property
    def admin(self) -> str:
        return make_conninfo(self.superuser, user=self.user, password=PASSWORD)

    def prepare(self) -> None:
        prepare_source(self.admin, self.plan, embedded=False, owner=OWNER, role_password=PASSWORD)

    def polled(self) -> list[tuple[int]]:
        """The keys that the pipeline's role finds by the query."""
        [table] = self.plan.polled
        with connect(role_dsn(self.superuser, self.plan)) as session:
            session.execute(search_path(table, is_local=False).encode())
            return session.execute(f"SELECT id FROM {relation(table)}".encode()).fetchall()

    def roles(self) -> list[tuple[str]]:
        return run(
            self.superuser,
            f"SELECT rolname FROM pg_roles WHERE rolname = '{self.plan.source_object}'",
        )


@pytest.mark.parametrize("place", ["extensions", "{user}"])
def test_the_role_finds_operators_as_the_login_that_prepares(
    database: str, tmp_path: Path, place: str
) -> None:
    """An operator of citext that is not found is that of text, which does not ignore case."""
    shop = Shop(database, tmp_path, place)
    for _ in range(2):
        shop.prepare()
        assert shop.polled() == [(1,)]
    remove_from_source(shop.admin, shop.plan, OWNER)
    assert shop.roles() == []


def test_a_schema_that_the_role_may_not_use_is_refused(database: str, tmp_path: Path) -> None:
    shop = Shop(database, tmp_path, "extensions", owner="CURRENT_USER")
    with pytest.raises(InputError, match=r"schema extensions: .* may not") as refused:
        check_source(shop.admin, shop.plan, OWNER)
    with pytest.raises(InputError, match="schema extensions"):
        shop.prepare()
    assert shop.roles() == []
    remedy = refused.value.remedy
    run(database, remedy[remedy.index("GRANT") : remedy.index(";")])
    shop.prepare()
    assert shop.polled() == [(1,)]
