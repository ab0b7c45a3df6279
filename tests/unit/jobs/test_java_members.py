"""The list of Java classes that the probe looks for, compared with the names in the jobs' code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import cdclake.jobs
from cdclake.jobs.jvm.members import MEMBERS

FOLDER = Path(cdclake.jobs.__file__).parent
NAME = re.compile(r"(?:[a-z]\w*\.){2,}[A-Z]\w*|org\.apache\.spark\.sql\.functions")
# Objects that a class of the list returns; the code never names their classes.
RETURNED = {"org.apache.iceberg.OverwriteFiles", "org.apache.iceberg.RowDelta"}
OF_THE_PROBE = {"org.apache.iceberg.IcebergBuild"}


def named_in_code() -> set[str]:
    """Class names in the modules' tuples for `java_with`, and in its calls."""
    found: set[str] = set()
    for file in FOLDER.rglob("*.py"):
        text = file.read_text()
        if "java_with(" not in text:
            continue
        tree = ast.parse(text)
        listed = [node.value for node in tree.body if isinstance(node, ast.Assign)]
        called = [
            argument
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "java_with"
            for argument in node.args
        ]
        for part in (*listed, *called):
            strings = part.elts if isinstance(part, ast.Tuple) else [part]
            found |= {
                str(each.value)
                for each in strings
                if isinstance(each, ast.Constant) and NAME.fullmatch(str(each.value))
            }
    return found


def test_the_list_has_each_class_that_the_code_names_and_no_other():
    assert named_in_code() - OF_THE_PROBE == {*MEMBERS} - RETURNED


def test_each_member_of_the_list_is_used():
    code = "\n".join(file.read_text() for file in FOLDER.rglob("*.py") if file.parent.name != "jvm")
    unused = [
        f"{name}.{member}"
        for name, members in MEMBERS.items()
        for member in members
        if not re.search(rf"""\.{member}\b|"{member}"|'{member}'""", code)
    ]
    assert unused == []
