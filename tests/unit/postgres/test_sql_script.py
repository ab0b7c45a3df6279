"""SQL files as pg_dump writes them, in statements with their lines."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cdclake.errors import InputError
from cdclake.postgres.run_script import run_script
from cdclake.postgres.sql_script import SqlStatement, read_script, split_script

DUMP = """\
-- PostgreSQL database dump; not a statement
/* a block /* in a block; */ with; semicolons */
SET client_encoding = 'UTF8';

CREATE FUNCTION public.f(text) RETURNS text
    LANGUAGE sql AS $_$
    SELECT ';' || $1; -- it's
$_$;

ALTER FUNCTION public.f(text) OWNER TO postgres;
INSERT INTO "odd;name" VALUES ('it''s; fine', E'a\\';b', 'back\\');
COPY public.t (a, b) FROM stdin;
1\tone; 'quoted
2\t\\\\N
\\.

COPY public.empty FROM stdin;
\\.
SELECT $$ \\d $$;
"""


def texts(script: str) -> list[str]:
    return [each.sql for each in split_script(script, "f.sql")]


def test_a_dump_is_split_into_its_statements() -> None:
    found = list(split_script(DUMP, "dump.sql"))
    assert [each.line for each in found] == [3, 5, 10, 11, 12, 17, 19]
    assert found[0].sql == "SET client_encoding = 'UTF8'"
    assert found[1].sql.endswith("$_$") and "it's" in found[1].sql
    assert [each.sets_owner for each in found] == [False, False, True, *[False] * 4]
    assert found[4] == SqlStatement(
        "COPY public.t (a, b) FROM stdin", 12, "1\tone; 'quoted\n2\t\\\\N\n"
    )
    assert (found[5].sql, found[5].rows) == ("COPY public.empty FROM stdin", "")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC\n SELECT 1;\n"
        " SELECT CASE WHEN a > 0 THEN 1 END;\nEND",
        "CREATE PROCEDURE p()\nBEGIN  ATOMIC\nEND",
        "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM u; INSERT INTO v VALUES (1))",
        "SELECT $A$;$a$;$A$",
        "BEGIN",
        "END",
    ],
)
def test_semicolons_within_a_statement_end_nothing(statement: str) -> None:
    assert texts(f"SELECT 0;\n{statement};\nSELECT 2;") == ["SELECT 0", statement, "SELECT 2"]


def test_comments_and_blank_statements_are_none() -> None:
    assert texts("-- only\n;;\n/* this */ ;") == []
    assert texts("") == []
    assert texts("-- a\nSELECT 1; -- b\n-- c\n") == ["SELECT 1"]


@pytest.mark.parametrize(
    ("script", "place", "part"),
    [
        ("SELECT 1;\n\\connect other\nSELECT 2;", "f.sql:2", "command of psql"),
        ("\\connect abc\nSELECT 1;", "f.sql:1", "command of psql"),
        ("SELECT 1;\n\n SELECT 2", "f.sql:3", "has no end"),
        ("SELECT 1;\nSELECT 'open;", "f.sql:2", "never closed"),
        ("COPY t FROM stdin;\n1\n", "f.sql:1", "have no end"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_line(script: str, place: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        texts(script)
    assert caught.value.message.startswith(f"{place}: ")
    assert part in caught.value.message
    assert caught.value.remedy


class Session:
    """A session that notes what is run, and fails at a statement with `fail`."""

    def __init__(self, superuser: str = "off") -> None:
        self.ran: list[str] = []
        self.superuser = superuser
        self.transaction_status = 0

    @property
    def info(self) -> Session:
        return self

    def execute(self, query: str) -> Any:
        if "is_superuser" in query:
            return self
        if "fail" in query:
            error: Any = RuntimeError("relation does not exist\nLINE 1")
            error.sqlstate = "42P01"
            raise error
        self.ran.append(query)
        if query in ("BEGIN", "START TRANSACTION", "COMMIT", "END", "ROLLBACK"):
            self.transaction_status = 2 if query in ("BEGIN", "START TRANSACTION") else 0
        return self

    def fetchone(self) -> tuple[str]:
        return (self.superuser,)

    @contextmanager
    def cursor(self) -> Any:
        yield self

    @contextmanager
    def copy(self, statement: str) -> Any:
        self.ran.append(statement)
        yield self

    def write(self, rows: str) -> None:
        self.ran.append(rows)


def test_statements_run_in_order_without_the_owners() -> None:
    session = Session()
    done = run_script(session, split_script(DUMP, "d"), "d", keep_owners=False)
    assert (done.statements, done.copied_rows, done.skipped_owners) == (6, 2, 1)
    assert not any("OWNER" in each for each in session.ran)
    kept = run_script(Session(), split_script(DUMP, "d"), "d", keep_owners=True)
    assert (kept.statements, kept.skipped_owners) == (7, 0)


def test_the_first_failure_ends_with_its_line() -> None:
    session = Session()
    with pytest.raises(InputError) as caught:
        script = split_script("SELECT 1;\nSELECT fail;\nSELECT 3;", "f.sql")
        run_script(session, script, "f.sql", keep_owners=False)
    assert caught.value.message == "f.sql:2: relation does not exist"
    assert "1 statements before it are done" in caught.value.remedy
    assert session.ran == ["SELECT 1"]


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ("SELECT 1;\nBEGIN;\nSELECT 2;\nSELECT fail;", ("the 1 statements before", "line 2 are")),
        ("START TRANSACTION;\nSELECT 2;\nSELECT fail;", ("the 0 statements before", "line 1 are")),
        ("BEGIN;\nCOPY t FROM stdin;\n1\n\\.\nSELECT fail;", ("the 0 statements", "line 1 are")),
        ("BEGIN;\nSELECT 2;\nCOMMIT AND CHAIN;\nSELECT fail;", ("the 3 statements", "line 3 are")),
    ],
)
def test_statements_of_an_open_transaction_are_not_done(
    script: str, parts: tuple[str, str]
) -> None:
    with pytest.raises(InputError) as caught:
        run_script(Session(), split_script(script, "f.sql"), "f.sql", keep_owners=False)
    remedy = caught.value.remedy
    assert all(part in remedy for part in parts)
    assert remedy.endswith("and it is undone: fix this one, then run the rest from that line on")


def test_statements_of_an_ended_transaction_are_done() -> None:
    script = "BEGIN;\nSELECT 2;\nCOMMIT;\nSELECT fail;"
    with pytest.raises(InputError) as caught:
        run_script(Session(), split_script(script, "f.sql"), "f.sql", keep_owners=False)
    done = "the 3 statements before it are done"
    assert caught.value.remedy == f"{done}: fix this one, then run the rest"


def test_a_transaction_without_an_end_is_undone() -> None:
    session, script = Session(), "SELECT 1;\nBEGIN;\nSELECT 2;"
    with pytest.raises(InputError, match=r"f\.sql:2: the transaction has no end") as caught:
        run_script(session, split_script(script, "f.sql"), "f.sql", keep_owners=False)
    assert session.ran == ["SELECT 1", "BEGIN", "SELECT 2", "ROLLBACK"]
    assert "the 1 statements before it are done, and it is undone" in caught.value.remedy


def test_a_transaction_whose_end_has_no_answer_may_be_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Lost(Session):
        def execute(self, query: str) -> Any:
            if query == "COMMIT":
                raise psycopg.OperationalError("consuming input failed: server closed it\nThis ...")
            return super().execute(query)

    caplog.set_level("INFO")
    script = "SELECT 1;\nBEGIN;\nSELECT 2;\nCOMMIT;\nSELECT 4;"
    with pytest.raises(InputError) as caught:
        run_script(Lost(), split_script(script, "f.sql"), "f.sql", keep_owners=False)
    assert caught.value.message.startswith("f.sql:4: ")
    assert "the 1 statements before the transaction from line 2 are done" in caught.value.remedy
    assert "undone, unless this statement has ended it: look in the source" in caught.value.remedy
    begins, *inside = [each.getMessage() for each in caplog.records][1:]
    assert begins == "runs f.sql:2; all statements before it are done"
    assert len(inside) == 2
    assert all("all statements before line 2 are done, those since then only" in s for s in inside)


def test_a_failure_of_the_connection_names_the_statement_that_may_be_done() -> None:
    """As psycopg raises it, without a SQLSTATE."""

    class Lost(Session):
        def execute(self, query: str) -> Any:
            if "3" in query:
                raise psycopg.OperationalError("consuming input failed: server closed it\nThis ...")
            return super().execute(query)

    script = split_script("SELECT 1;\nSELECT 2;\nSELECT 3;\nSELECT 4;", "f.sql")
    with pytest.raises(InputError) as caught:
        run_script(Lost(), script, "f.sql", keep_owners=False)
    assert caught.value.message == "f.sql:3: consuming input failed: server closed it"
    assert "the 2 statements before it are done" in caught.value.remedy
    assert "may be done as well" in caught.value.remedy


def test_an_error_that_is_not_of_the_database_stays_as_it_is() -> None:
    class Full(Session):
        def execute(self, query: str) -> Any:
            if "3" in query:
                raise MemoryError
            return super().execute(query)

    with pytest.raises(MemoryError):
        run_script(Full(), split_script("SELECT 3;", "f"), "f", keep_owners=False)


def test_triggers_are_switched_off_for_the_session_of_an_administrator() -> None:
    script = "ALTER TABLE public.t DISABLE TRIGGER ALL;\nALTER TABLE t ENABLE TRIGGER ALL;\n"
    administrator, superuser = Session(), Session("on")
    for session in (administrator, superuser):
        run_script(session, split_script(script, "f"), "f", keep_owners=False)
    assert administrator.ran == [
        "SET session_replication_role = replica",
        "SET session_replication_role = origin",
    ]
    assert superuser.ran[0] == "ALTER TABLE public.t DISABLE TRIGGER ALL"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"could not read .*nothing\.sql: No such file"):
        read_script(tmp_path / "nothing.sql")
    latin = tmp_path / "latin.sql"
    latin.write_bytes("SELECT 'größe';".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.sql: it is not UTF-8"):
        read_script(latin)


def test_what_pg_dump_tells_psql_is_left_out():
    text = "-- head\n\\restrict aBc1\n\nSET a = 1;\nSELECT '\\restrict x';\n\\unrestrict aBc1\n"
    found = [(each.sql, each.line) for each in split_script(text, "f.sql")]
    assert found == [("SET a = 1", 4), ("SELECT '\\restrict x'", 5)]


def test_carriage_returns_of_values_stay(tmp_path: Path) -> None:
    file = tmp_path / "f.sql"
    values = "INSERT INTO t VALUES ('a\r\nb', 'c\rd', $$e\r\nf$$, \"g\r\n\")"
    file.write_bytes(f'{values};\nCOPY t FROM stdin CSV;\n"h\r\ni"\n\\.\n'.encode())
    insert, copy = split_script(read_script(file), "f.sql")
    assert insert.sql == values
    assert copy.rows == '"h\r\ni"\n'


def test_a_byte_order_mark_is_no_part_of_the_first_statement(tmp_path: Path) -> None:
    file = tmp_path / "f.sql"
    file.write_bytes(b"\xef\xbb\xbfSELECT 1;")
    assert texts(read_script(file)) == ["SELECT 1"]


def test_lines_may_end_as_on_windows() -> None:
    unix = f"\\restrict aBc1\n{DUMP}"
    found = list(split_script(unix.replace("\n", "\r\n"), "dump.sql"))
    expected = list(split_script(unix, "dump.sql"))
    assert [each.line for each in found] == [each.line for each in expected]
    assert [each.sql.replace("\r\n", "\n") for each in found] == [each.sql for each in expected]
    assert [each.rows for each in found if each.rows] == ["1\tone; 'quoted\r\n2\t\\\\N\r\n"]
    assert [each.rows for each in expected if each.rows] == ["1\tone; 'quoted\n2\t\\\\N\n"]
    with pytest.raises(InputError, match=r"^f\.sql:2: '.*connect other' is a command of psql"):
        texts("SELECT 1;\r\n\\connect other\r\n")


@pytest.mark.parametrize("end", ["\\.", "\\.\n", "\\.\r", "\\.\r\n"])
@pytest.mark.parametrize("rows", ["", "1\n", "\\\\.\n", " \\.\n", "\\.1\n"])
def test_rows_end_with_the_first_line_that_only_ends_them(rows: str, end: str) -> None:
    [found] = split_script(f"COPY t FROM stdin;\n{rows}{end}", "f.sql")
    assert found.rows == rows


def test_a_carriage_return_ends_a_comment_as_for_postgresql() -> None:
    assert texts("-- a\rSELECT 1; -- b;\rSELECT 2;") == ["SELECT 1", "SELECT 2"]
