"""Files of a new project: complete, without placeholders, and never over existing ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from cdclake.cli.main import main
from cdclake.config.resolve import load_plan
from cdclake.config.schema import render_schema
from cdclake.scaffold.new_project import project_files, write_project
from tests.source_tree import PROJECT

FROM_DATABASE = """\
version: 1
name: shop-lake
source: {database: shop}
tables:
  public.visits: {key: [id], columns: {id: bigint}}
"""


@pytest.fixture
def files() -> dict[str, str]:
    return project_files("shop-lake", render_schema(), None)


def test_no_placeholder_is_left(files: dict[str, str]) -> None:
    assert [path for path, text in files.items() if re.search(r"@[A-Z_]+@", text)] == []
    assert {".gitignore", ".github/workflows/pipeline.yml", "app.py", "README.md"} <= files.keys()


def test_versions_are_those_of_this_repository(files: dict[str, str]) -> None:
    ours = json.loads((PROJECT / "package.json").read_text())
    assert json.loads(files["package.json"])["devDependencies"] == ours["devDependencies"]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    pinned = f"=={project['version']}"
    written = tomllib.loads(files["pyproject.toml"])
    assert written["project"]["dependencies"] == [f"cdclake[cdk]{pinned}"]
    assert written["project"]["requires-python"] == project["requires-python"]
    assert f"cdclake[local]{pinned}" in written["dependency-groups"]["dev"]
    wheel = f"wheels/cdclake-{project['version']}-py3-none-any.whl"
    assert written["tool"]["uv"] == {"package": False, "sources": {"cdclake": {"path": wheel}}}
    tested = [line for line in project["optional-dependencies"]["dev"] if "pytest==" in line]
    assert set(tested) <= set(written["dependency-groups"]["dev"])


@pytest.mark.parametrize("name", ["cdclake", "pytest", "trino"])
def test_project_has_the_name_of_no_package_that_it_installs(name: str) -> None:
    """Installers take such a requirement for the project itself, and refuse it."""
    written = tomllib.loads(project_files(name, render_schema(), None)["pyproject.toml"])
    lock = (PROJECT / "requirements.lock").read_text()
    installed = {"cdclake", *re.findall(r"^([A-Za-z0-9._-]+)==", lock, re.M)}
    assert name in installed and written["project"]["name"] not in installed


def test_readme_names_node_before_the_first_tests(files: dict[str, str]) -> None:
    before, _, _ = files["README.md"].partition("uv run pytest")
    assert "Node.js 22 or 24" in before


@pytest.mark.parametrize(
    ("has_node", "message"),
    [(False, "the CDK needs Node.js: install version 22 or 24"), (True, "has no aws_cdk: run `uv")],
)
def test_app_names_what_it_lacks(
    tmp_path: Path, files: dict[str, str], has_node: bool, message: str
) -> None:
    write_project(tmp_path, files)
    if has_node:
        (tmp_path / "node").touch(0o755)
    done = subprocess.run(
        [sys.executable, "-S", "app.py"],  # without the installed packages
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr
    assert "Traceback" not in done.stderr


def test_feature_flags_are_those_of_this_repository(files: dict[str, str]) -> None:
    ours = json.loads((PROJECT / "cdk.json").read_text())["context"]
    assert json.loads(files["cdk.json"])["context"] == {
        name: value for name, value in ours.items() if name != "pipeline"
    }


def test_workflow_stores_no_key_and_verifies_at_the_end(files: dict[str, str]) -> None:
    jobs = YAML(typ="safe").load(files[".github/workflows/pipeline.yml"])["jobs"]
    assert list(jobs) == ["check", "diff", "deploy"]
    for name in ("diff", "deploy"):
        assert jobs[name]["needs"] == "check"
        assert jobs[name]["permissions"] == {"contents": "read", "id-token": "write"}
    assert "permissions" not in jobs["check"]
    runs = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert [run for run in runs if "uv sync" in run and "--locked" not in run] == []
    assert jobs["deploy"]["steps"][-1]["run"].startswith("uv run --no-dev cdclake verify --target ")
    assert jobs["deploy"]["if"] == "github.event_name == 'push' && vars.DEPLOY == 'true'"
    assert "secrets." not in files[".github/workflows/pipeline.yml"]


def test_readme_creates_the_table_of_the_example(tmp_path: Path, files: dict[str, str]) -> None:
    write_project(tmp_path, files)
    [table] = load_plan(tmp_path / "pipelines" / "shop-lake.yaml", None).tables
    columns = ", ".join(
        f"{column.source} {column.type}" + (" PRIMARY KEY" if column.source in table.key else "")
        for column in table.columns
    )
    assert f"CREATE TABLE {table.table} ({columns});" in files["README.md"]


@pytest.mark.parametrize("pipeline", [None, FROM_DATABASE])
def test_pipeline_file_names_its_schema_and_is_valid(tmp_path: Path, pipeline: str | None) -> None:
    write_project(tmp_path, project_files("shop-lake", render_schema(), pipeline))
    file = tmp_path / "pipelines" / "shop-lake.yaml"
    first = file.read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=pipeline.schema.json"
    assert (file.parent / "pipeline.schema.json").is_file()
    for environment in (None, "trial", "prod"):
        assert load_plan(file, environment).name == "shop-lake"


def test_a_folder_with_files_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CDCLAKE_SOURCE_DSN", raising=False)
    (tmp_path / "shop-lake").mkdir()
    (tmp_path / "shop-lake" / "app.py").write_text("mine")
    with pytest.raises(SystemExit) as ended:
        main(["new", "shop-lake"])
    assert ended.value.code == 2
    assert "shop-lake exists and is not an empty folder" in capsys.readouterr().err
    assert [path.read_text() for path in (tmp_path / "shop-lake").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["shop-", "s", "1shop", "Shop", "a" * 22])
def test_an_invalid_name_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["new", name])
    assert ended.value.code == 2
    assert f"invalid project name '{name}'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_database_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["new", "shop-lake", "--from-db", "postgresql://u:hunter22@127.0.0.1:1/d"])
    assert "hunter22" not in capsys.readouterr().err
    assert list(tmp_path.glob("shop-lake*")) == []
