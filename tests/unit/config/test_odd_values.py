"""Any value at any place of a pipeline file is a problem or valid, and shows no password."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from cdclake.cli.validate import validate
from cdclake.config.document import Document
from cdclake.config.model import PipelineFile
from cdclake.config.problems import InvalidPipeline
from cdclake.config.resolve import find_problems, load_plan, resolve_plan
from cdclake.config.sizes import sized
from cdclake.config.yaml_reader import parse_document
from tests.unit.config.odd_values import places, with_key, with_value

Replace = Callable[[Document, Any, Any], Document]
SEED, COUNT = 20261130, 500  # 5 ms each
TABLE = "  public.t: {key: [id], columns: {id: bigint}}\n"
SECRET = "hunter22"
WITH_PASSWORD = (
    f"postgres://admin:{SECRET}x@db.example.com:5432/shop",
    f"postgres://admin:p@{SECRET}@db.example.com/shop",
    f"host=h password={SECRET}",
    f"host=h user=u password='a, {SECRET}'",
    f'{"x" * 30} postgres://admin:{SECRET}{"y" * 40}@h/d and "it\'s"',
    f"SELECT ( '{'x' * 70}postgres://admin:{SECRET}{'y' * 90}@h/d' {'z' * 80}",
)
ODD: tuple[Any, ...] = (
    None, True, "", " ", "\0", 0, -1, 1 << 70, 0.5, -0.0, 1e300, math.inf, math.nan, "500",
    "x" * 3000, "2026-11-30", "12:30:00", "ä\n", "'", "${x}", "SELECT 1",
    [], [[]], [None], [{}], ["a", "a"], {}, {"a": None}, {"": 1}, {"a": {"b": [1]}}, {"a": "a"},
)  # fmt: skip
ODD_KEYS = ("", " ", "null", "1", "[a]", "{a: b}", "2026-11-30", "9" * 400, "a.b.c", "\0", "x.y")


def sampled(replace: Replace, values: Sequence[Any], count: int) -> Iterator[Document]:
    """Documents with one of the values at a place, of a sample that the seed decides."""
    pairs = [(at, value) for at in places() for value in values]
    if replace is with_key:
        pairs = [pair for pair in pairs if isinstance(pair[0][1][-1], str)]
    for (document, at), value in random.Random(SEED).sample(pairs, count):
        yield replace(document, at, value)


@pytest.mark.parametrize(("replace", "values"), [(with_value, ODD), (with_key, ODD_KEYS)])
def test_find_problems_raises_nothing(replace: Replace, values: Sequence[Any]) -> None:
    for document in sampled(replace, values, COUNT):
        if not find_problems(document, deployed=True):
            resolve_plan(PipelineFile.model_validate(sized(document).values))


@pytest.mark.parametrize("replace", [with_value, with_key])
def test_find_problems_never_shows_a_password(replace: Replace) -> None:
    for document in sampled(replace, WITH_PASSWORD, COUNT // 2):
        for problem in find_problems(document):
            assert SECRET not in f"{problem.message} {problem.remedy}"


@pytest.mark.parametrize(
    "line",
    [
        f"password: *{SECRET}",
        f"password: !{SECRET} x",
        f"password: !{SECRET}!y x",
        f"password: 1.{'1' * 30}22",
        f"source: [{WITH_PASSWORD[0]}",
        f"source: '{WITH_PASSWORD[2]}",
        f'source: "{WITH_PASSWORD[2]}\\q"',
        f"{WITH_PASSWORD[0]}: 1\n{WITH_PASSWORD[0]}: 2",
    ],
)
def test_parse_document_shows_no_password(line: str) -> None:
    document = parse_document(f"version: 1\n{line}\n")
    assert document.problems
    for problem in find_problems(document):
        assert SECRET not in f"{problem.message} {problem.remedy}"
        assert "1111" not in problem.message


def test_validate_json_shows_no_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    text = f"source: {WITH_PASSWORD[2]}\n{WITH_PASSWORD[0]}: 1\n"
    file.write_text(f"version: 1\nname: shop\n{text}")
    with pytest.raises(typer.Exit) as exited:
        validate(file, json_output=True)
    printed = "".join(capsys.readouterr())
    assert exited.value.exit_code == 2
    assert SECRET not in printed
    assert "this value contains a password" in printed


CRASHED = {
    "derived table of a table without columns": "  public.t: {key: [id], columns: {}}\n"
    "derived: {copy: {sql: SELECT id FROM t_current, key: [id]}}",
    "quoted volume": f"{TABLE}aws: {{kafka: {{create: {{max_volume_gb: '500'}}}}}}",
    "no brokers": f"{TABLE}aws: {{kafka: {{create: {{brokers_per_zone: 0}}}}}}",
    "domain as a list": "  public.t: {key: [id], columns: {id: bigint}, delivery: firehose,"
    " domain: [sales]}\nfirehose: {domains: {sales: {}}}",
    "zones as lists": f"{TABLE}aws: {{region: eu-west-1,"
    " network: {create: {zones: [[a], [b]]}}}",
    "long path": f"{TABLE}puts: {{p: {{columns: {{a: text}}, transform: {'x' * 3000}}}}}",
    "path with a null": f'{TABLE}puts: {{p: {{columns: {{a: text}}, transform: "a\\0"}}}}',
}


@pytest.mark.parametrize("text", CRASHED.values(), ids=CRASHED)
def test_load_plan_reports_a_refused_structure(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"version: 1\nname: shop\nsource: {{database: shop}}\ntables:\n{text}\n")
    with pytest.raises(InvalidPipeline):
        load_plan(file)


@pytest.mark.parametrize("text", ["{}", "# none\n{}\n", "", "null", "[]"])
def test_load_plan_refuses_an_empty_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(InvalidPipeline, match=r"file is (empty|not a mapping)"):
        load_plan(file)
