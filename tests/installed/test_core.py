"""The wheel in an empty environment: what works without extras, and what names the missing one."""

from __future__ import annotations

import json
import tomllib
import zipfile
from pathlib import Path

import pytest

from cdclake import __version__
from tests.installed.wheel import Installed, build_wheel, install
from tests.source_tree import PROJECT

MOST_MB = 80
_DEPLOYED = ("--target", "aws", "--file", "pipelines/shop-lake.yaml")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(wheel, tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def project(core: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("somewhere")
    done = core.run("new", "shop-lake", "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["folder"] == str(folder / "shop-lake")
    return folder / "shop-lake"


def test_wheel_has_every_module_and_resource_below_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        own = {name for name in names if name.endswith(".jar")}
        assert all(zipfile.is_zipfile(archive.open(name)) for name in own)
    assert {name.partition("/")[0] for name in names} == {"cdclake"}
    resources = {f"cdclake/resources/{path.name}" for path in _files(PROJECT / "cdclake/resources")}
    resources |= {f"cdclake/ui/static/{p.name}" for p in (PROJECT / "cdclake/ui/static").iterdir()}
    modules = {
        f"cdclake/{link}/{path.relative_to(PROJECT / folder)}"
        for link, folder in {"jobs": "glue_jobs", "stacks": "stacks", "functions": "lambda"}.items()
        for path in (PROJECT / folder).rglob("*.py")
    }
    files = {"py.typed", "resources/pipelines/shop.sql", "local/trino/StartTrino.java"}
    assert {f"cdclake/{file}" for file in files} | resources <= names
    assert own == {f"cdclake/resources/cdclake-{part}.jar" for part in ("connect", "iceberg")}
    assert modules - names == set()


def test_every_runbook_is_in_the_wheel(core: Installed, tmp_path: Path) -> None:
    pages = {page.stem: page.read_text() for page in (PROJECT / "docs/runbooks").glob("*.md")}
    listed = json.loads(core.run("runbook", "--json", cwd=tmp_path).stdout)["runbooks"]
    assert {each["name"] for each in listed} == pages.keys()
    assert core.run("runbook", "stopped-table", cwd=tmp_path).stdout == pages["stopped-table"]


def test_version_is_that_of_the_wheel(core: Installed, wheel: Path, tmp_path: Path) -> None:
    assert core.run("--version", cwd=tmp_path).stdout == f"cdclake {__version__}\n"
    assert wheel.name == f"cdclake-{__version__}-py3-none-any.whl"


def test_core_is_small(core: Installed) -> None:
    size = sum(path.stat().st_size for path in core.folder.rglob("*") if not path.is_symlink())
    assert size < MOST_MB * 1e6


def test_new_project_is_valid_and_pins_the_version(core: Installed, project: Path) -> None:
    done = core.run("validate", "pipelines/shop-lake.yaml", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pipelines/shop-lake.yaml: valid\n")
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    assert declared["dependencies"] == [f"cdclake[cdk]=={__version__}"]


def test_a_users_stacks_package_is_not_ours(core: Installed, project: Path) -> None:
    found = core.run(
        *("-c", "import stacks, cdclake.zip_files; print(stacks.__file__)"),
        cwd=project,
        program="python",
    )
    assert found.stdout == f"{project}/stacks/__init__.py\n", found.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["up", "pipelines/shop-lake.yaml"], "local"),
        (["status"], "local"),
        (["sql", "SELECT 1", *_DEPLOYED], "read"),
        (["verify", "--reader", "athena", *_DEPLOYED], "read"),
        (["cost", "pipelines/shop-lake.yaml"], "cdk"),
    ],
)
def test_a_missing_extra_is_named(
    core: Installed, project: Path, wheel: Path, words: list[str], extra: str
) -> None:
    region = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    done = core.run(*words, cwd=project, **region)
    assert done.returncode == 2, done.stderr
    remedy = done.stderr.splitlines()[-1]
    assert remedy.startswith(f'remedy: install "cdclake[{extra}] @ {wheel.as_uri()}" with the tool')
    assert not (project / ".cdclake").exists()


def test_doctor_says_what_a_local_lake_needs(core: Installed, project: Path, wheel: Path) -> None:
    done = core.run("doctor", "--json", cwd=project / "pipelines")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert checks["packages"]["state"] == "failed" and "pyspark" in checks["packages"]["detail"]
    wanted = f'install "cdclake[local] @ {wheel.as_uri()}" with the tool'
    assert checks["packages"]["remedy"].startswith(wanted)
    assert str(core.cache) in checks["jars"]["detail"]
    assert f" {project}/.cdclake" in checks["disk"]["detail"]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()]
