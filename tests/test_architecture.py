"""Imports go one way and files stay small: the design's rules, checked on every file."""

from __future__ import annotations

import ast
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from tests.source_tree import CODE, LINKS, PROJECT, imported_modules, is_within, module_of, sources

NO_ROOTS = {*LINKS, *LINKS.values(), "cli", "local"}
MAX_FILE, MAX_FUNCTION, MAX_MEDIAN = 400, 40, 150
VAGUE_NAMES = {"utils", "helpers", "common", "constants", "util", "helper"}

CONFIG_LIBRARIES = {"jq", "pydantic", "pydantic_core", "ruamel", "sqlglot"}
TOP = {"cdclake.local", "cdclake.cli", "scripts", "app", "benchmarks", "tests"}
# folder -> modules that nothing in it imports; the longest folder that fits decides
NEVER: dict[str, set[str]] = {
    "cdclake": TOP | {"cdclake.jobs", "cdclake.stacks", "cdclake.functions", "cdclake.config"},
    # What CDK apps import: nothing of it is loaded before it is used.
    "cdclake/__init__.py": TOP | {"cdclake.jobs", "cdclake.functions", "cdclake.config"},
    "cdclake/cost": TOP | {"cdclake.jobs", "cdclake.stacks", "cdclake.functions"},
    "cdclake/config": TOP | {"cdclake.jobs", "cdclake.stacks", "cdclake.functions"},
    "glue_jobs": TOP
    | {"aws_cdk", "yaml", "ruamel", "pydantic"}
    | {"cdclake.stacks", "cdclake.functions", "cdclake.config"},
    "lambda": TOP | {"aws_cdk", "pyspark", "cdclake.jobs", "cdclake.stacks", "cdclake.config"},
    # A deployment comes checked, from `cdclake.config.deployment`; nothing is looked up in AWS.
    "stacks": TOP
    | {"pyspark", "cdclake.jobs", "cdclake.functions", "boto3", "botocore", "ruamel"}
    | {"cdclake.config.resolve", "cdclake.config.document", "cdclake.config.yaml_reader"},
    "cdclake/local": {"scripts", "app", "benchmarks", "tests", "aws_cdk"}
    | {"cdclake.cli", "cdclake.stacks", "cdclake.functions"},
    "cdclake/deployed": {"scripts", "app", "benchmarks", "tests", "aws_cdk"}
    | {"cdclake.cli", "cdclake.stacks", "cdclake.functions", "cdclake.local"},
    "cdclake/cli": {"scripts", "app", "benchmarks", "tests"},
    "benchmarks": {"scripts", "app", "tests", "aws_cdk"} | {"cdclake.cli", "cdclake.stacks"},
    "scripts": {"benchmarks"},
}
CORE = "cdclake"
OUTER = ("cdclake/cli", "cdclake/deployed", "cdclake/local")
ALLOWED_OF_STACKS = ("cdclake.stacks.constructs", "cdclake.stacks.bundles")


def import_violations(path: str, source: str) -> list[str]:
    """What the file at `path`, relative to the project, imports against the rules."""
    modules = imported_modules(source)
    folders = [folder for folder in NEVER if is_within(path, folder, "/")]
    never = NEVER[max(folders, key=len)] if folders else set()
    wrong = {module for module in modules for banned in never if is_within(module, banned)}
    if is_within(path, CORE, "/") and not any(is_within(path, outer, "/") for outer in OUTER):
        allowed = {"cdclake", *sys.stdlib_module_names}
        if is_within(path, "cdclake/config", "/"):
            allowed |= CONFIG_LIBRARIES
        wrong |= {module for module in modules if module.split(".")[0] not in allowed}
    if is_within(path, "stacks/constructs", "/"):  # a construct knows no stack
        stacks = {module for module in modules if is_within(module, "cdclake.stacks")}
        wrong |= {module for module in stacks if not module.startswith(ALLOWED_OF_STACKS)}
    if not is_within(path, "glue_jobs/runtime", "/"):
        wrong |= {module for module in modules if is_within(module, "awsglue")}
    wrong |= {module for module in modules if module.split(".")[0] in NO_ROOTS}
    return [f"{path} imports {module}" for module in sorted(wrong)]


def size_violations(path: str, source: str) -> list[str]:
    """Files and functions that are longer than anyone wants to read, and names that say nothing."""
    found = []
    if VAGUE_NAMES & {part.removesuffix(".py") for part in PurePosixPath(path).parts}:
        found.append(f"{path} has a name that says nothing")
    lines = len(source.splitlines())
    if lines > MAX_FILE:
        found.append(f"{path} has {lines} lines")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION:
                found.append(f"{path}: {node.name} has {length} lines")
    return found


def test_the_packages_of_the_one_root_are_links_to_the_projects_folders():
    for link, folder in LINKS.items():
        assert (PROJECT / "cdclake" / link).readlink() == Path("..", folder)
    assert not [path for path in sources() if path.split("/")[:2] == ["cdclake", "jobs"]]
    assert {"glue_jobs/stream_changes.py", "cdclake/cli/main.py"} <= sources().keys()


def test_no_module_has_two_names():
    found = [
        f"{path} imports {module}"
        for path, text in sources(*CODE, "tests").items()
        for module in imported_modules(text)
        if module.split(".")[0] in NO_ROOTS
    ]
    assert not found, "\n".join(found)


def test_imports_go_one_way():
    found = [wrong for path, text in sources().items() for wrong in import_violations(path, text)]
    assert not found, "\n".join(found)


def test_files_and_functions_stay_small():
    found = [
        wrong
        for path, text in sources(*CODE, "tests").items()
        for wrong in size_violations(path, text)
    ]
    assert not found, "\n".join(found)


def test_the_median_file_is_short():
    lengths = [len(text.splitlines()) for text in sources().values()]
    assert statistics.median(lengths) < MAX_MEDIAN


PLANTED_IMPORTS = [
    ("cdclake/naming.py", "import pyspark"),
    ("cdclake/plan.py", "from cdclake.config.resolve import load_plan"),
    ("cdclake/plan.py", "from cdclake import config"),
    ("cdclake/iceberg/ddl.py", "def late():\n    import boto3"),
    ("cdclake/config/model.py", "import yaml"),
    ("cdclake/config/model.py", "from cdclake.cli.output import emit"),
    ("glue_jobs/apply_changes.py", "import ruamel.yaml"),
    ("glue_jobs/apply_changes.py", "from awsglue.utils import getResolvedOptions"),
    (
        "glue_jobs/apply_changes.py",
        "if TYPE_CHECKING:\n    from cdclake.local.process.home import x",
    ),
    ("lambda/decode/decode.py", "from cdclake.jobs.runtime import session"),
    ("stacks/jobs_stack.py", "import pyspark.sql"),
    ("stacks/jobs_stack.py", "from cdclake.jobs import stream_changes"),
    ("stacks/source_stack.py", "def look_up():\n    import boto3"),
    ("stacks/source_stack.py", "from cdclake.config.resolve import load_file"),
    ("stacks/source_stack.py", "import app"),
    ("stacks/constructs/topic.py", "from cdclake.stacks.source_stack import SourceStack"),
    ("cdclake/naming.py", "import aws_cdk"),
    ("glue_jobs/apply_changes.py", "from cdclake.stacks.constructs import topic"),
    ("cdclake/local/process/supervisor.py", "from cdclake.cli import main"),
    ("cdclake/cli/up.py", "import awsglue"),
    ("cdclake/cli/up.py", "from benchmarks.history import History"),
    ("benchmarks/run_contender.py", "from tests.spark import events"),
    ("scripts/types_page.py", "from benchmarks import page"),
    ("cdclake/cli/up.py", "from local import lifecycle"),
    ("app.py", "from stacks.pipeline_app import add_stacks"),
    ("cdclake/stacks.py", "import jobs.runtime"),
]


@pytest.mark.parametrize(("path", "source"), PLANTED_IMPORTS)
def test_a_planted_import_is_found(path, source):
    assert import_violations(path, source)


def test_what_the_rules_allow_is_not_found():
    assert not import_violations("glue_jobs/runtime/arguments.py", "import awsglue.utils, pyspark")
    assert not import_violations("cdclake/config/model.py", "import pydantic, json, cdclake.plan")
    assert not import_violations("cdclake/cli/up.py", "from cdclake.local import supervisor")
    assert not import_violations(
        "app.py", "import aws_cdk, cdclake.config.deployment, cdclake.stacks"
    )
    assert not import_violations(
        "stacks/constructs/topic.py",
        "import aws_cdk, cdclake.stacks.constructs.nag_suppressions, cdclake.plan",
    )
    assert not import_violations("cdclake/clinic.py", "import json, cdclake.configuration")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("cdclake/local/utils.py", ""),
        ("cdclake/cli/common/x.py", ""),
        ("cdclake/cli/up.py", "x = 1\n" * (MAX_FILE + 1)),
        ("cdclake/cli/up.py", "def long():\n" + "    x = 1\n" * MAX_FUNCTION),
    ],
)
def test_planted_sizes_and_names_are_found(path, source):
    assert size_violations(path, source)


PACKAGES = ("cdclake.cli", "cdclake.config", "cdclake.jobs", "cdclake.local", "cdclake.stacks")
SHARED_CLASS_NAMES = {"Java"}  # the inner class by which py4j finds the interfaces


def package_of(path: str) -> str:
    """The package within which names of files are unique; `cdclake` is the core."""
    module = module_of(path)
    return next((name for name in PACKAGES if is_within(module, name)), "cdclake")


def repeated_names(texts: Mapping[str, str]) -> list[str]:
    """Files of one name in one package, and public classes of one name anywhere."""
    places = defaultdict(list)
    for path, text in texts.items():
        module = module_of(path)
        if not is_within(module, "cdclake") or is_within(module, "cdclake.functions"):
            continue
        if not path.endswith("__init__.py"):
            places[f"{package_of(path)}: {PurePosixPath(path).name}"].append(path)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[f"class {node.name}"].append(path)
    shared = {f"class {name}" for name in SHARED_CLASS_NAMES}
    return [
        f"{name}: {', '.join(found)}"
        for name, found in places.items()
        if len(found) > 1 and name not in shared
    ]


def test_no_file_and_no_class_has_the_name_of_another():
    found = repeated_names(sources())
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("glue_jobs/apply/leases.py", ""),
        ("cdclake/local/demo/lifecycle.py", ""),
        ("glue_jobs/verify/again.py", "class Leases:\n    pass"),
    ],
)
def test_a_planted_name_of_another_is_found(path, source):
    assert repeated_names({**sources(), path: source})
