"""A new project in a folder outside of the clone, with nothing but the wheel and its extras.

Its own tests pass, the CDK CLI synthesizes it, and a lake starts, equals its source, is shown by
`cdclake ui` and is removed.
The jars come from Maven Central into an empty cache.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.installed.wheel import Installed, build_wheel, install

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ALARMS = ("cloudwatch.alarm", "alarms")  # meter and detail in the answer of `cost`
# CloudWatch bills an alarm by its metrics: that of the project has one for each storage class.
METRICS_OF_THE_ALARM = 4
CREATED = """
create table orders (
  order_id bigint primary key, status text, total numeric(12,2), updated_at timestamptz
);
insert into orders select i, 'new', i * 1.25, now() from generate_series(1, 500) i;
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A project and the environment that its commands run in."""

    environment: Installed
    folder: Path

    @property
    def file(self) -> str:
        return f"pipelines/{self.folder.name}.yaml"

    def json_of(self, *words: str, **variables: str) -> dict[str, Any]:
        done = self.environment.run(*words, "--json", cwd=self.folder, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    place = tmp_path_factory.mktemp("whole")
    environment = install(wheel, place, "[cdk,local]", "pytest")
    done = environment.run("new", "shop-lake", cwd=place)
    assert done.returncode == 0, done.stderr
    return Project(environment, place / "shop-lake")


def test_the_projects_own_tests_pass(project: Project) -> None:
    done = project.environment.run("-m", "pytest", "-q", cwd=project.folder, program="python")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("\n") and " 3 passed in " in f" {done.stdout.splitlines()[-1]}"


def test_the_cdk_cli_synthesizes_it(project: Project) -> None:
    fetched = project.environment.run(
        "install", "--no-audit", "--no-fund", cwd=project.folder, program="npm"
    )
    assert fetched.returncode == 0, fetched.stderr
    done = project.environment.run(
        *("--no-install", "cdk", "synth", "--quiet", "--context", "environment=prod"),
        cwd=project.folder,
        program="npx",
        AWS_EC2_METADATA_DISABLED="true",
        CDK_DISABLE_CLI_TELEMETRY="true",
    )
    assert done.returncode == 0, done.stderr
    files = {path.name for path in (project.folder / "cdk.out").glob("*.template.json")}
    parts = ("lake", "network", "observability", "processing", "size")
    assert {f"shop-lake-prod-{part}.template.json" for part in parts} <= files
    words = ("cost", project.file, "--environment", "prod")
    without, written = (
        {(each["meter"], each["detail"]): each["quantity"] for each in found["meters"]}
        for found in (project.json_of(*words), project.json_of(*words, "--templates", "cdk.out"))
    )
    # The project's own stack has an alarm.
    assert {meter for meter in written if written[meter] != without.get(meter)} == {ALARMS}
    assert written[ALARMS] == without[ALARMS] + METRICS_OF_THE_ALARM


@pytest.fixture(scope="module")
def source(project: Project) -> Iterator[str]:
    """The DSN of the lake's own database, with a table."""
    started = project.json_of("up", "--no-stream")
    dsn = make_conninfo(**started["source"])
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute(CREATED)
    yield dsn
    project.json_of("down", "--purge")
    assert not (project.folder / ".cdclake" / "data" / "postgres").exists()


@pytest.fixture(scope="module")
def lake(project: Project, source: str) -> Project:
    """The project with its lake started and filled."""
    assert project.json_of("up", project.file, "--wait", "rows")["ok"]
    return project


@pytest.mark.local
def test_a_lake_equals_its_source(lake: Project) -> None:
    answer = lake.json_of("sql", "SELECT count(*), sum(total) FROM orders_current")
    assert answer["rows"] == [[500, "156562.50"]]
    assert lake.json_of("verify")["ok"]
    assert (lake.folder / ".cdclake" / "secrets.properties").is_file()


@pytest.mark.local
def test_the_page_is_served_from_the_wheel(lake: Project) -> None:
    with lake.environment.started("ui", "--json", cwd=lake.folder) as shown:
        assert shown["ok"], shown
        url = urlsplit(shown["url"])
        address, token = f"{url.hostname}:{url.port}", url.fragment.removeprefix("token=")
        status, page = fetched(address, "/")
        assert (status, b"<!doctype html>" in page.lower()) == (200, True)
        linked = re.findall(rb'(?:src|href)="/?([a-z_]+[.](?:js|css))"', page)
        assert len(linked) >= 2
        assert {fetched(address, f"/{name.decode()}")[0] for name in linked} == {200}
        assert fetched(address, "/api/overview")[0] == 401
        status, answer = fetched(address, "/api/overview", token)
    overview = json.loads(answer)
    assert (status, [each["table"] for each in overview["tables"]]) == (200, ["orders"])


def fetched(address: str, path: str, token: str = "") -> tuple[int, bytes]:
    """Return status and body of a request, past a proxy that the environment may name."""
    with closing(HTTPConnection(address, timeout=60)) as connection:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, response.read()


@pytest.mark.local
def test_a_project_is_written_from_a_database(project: Project, source: str) -> None:
    place = project.folder.parent
    done = project.environment.run(
        "new", "from-database", "--json", cwd=place, CDCLAKE_SOURCE_DSN=source
    )
    assert done.returncode == 0, done.stdout
    other = Project(project.environment, place / "from-database")
    assert other.json_of("validate", other.file)["tables"] == [
        {"source": "public.orders", "table": "orders"}
    ]
    shutil.rmtree(other.folder)
