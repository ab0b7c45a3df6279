"""A mistake in a pipeline file, and where it has to be reported."""

from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document


def assert_reported(text: str, line: int, column: int, message: str, remedy: str) -> None:
    """The first problem of this message stands there, and says this remedy."""
    problems = find_problems(parse_document(text))
    here = [problem for problem in problems if message in problem.message]
    assert here, [problem.render("f") for problem in problems]
    assert (here[0].line, here[0].column) == (line, column)
    assert remedy in here[0].remedy


def assert_remedies(text: str) -> None:
    """Every problem has a message and a remedy, of one line each."""
    for problem in find_problems(parse_document(text)):
        assert problem.message and problem.remedy
        assert "\n" not in problem.message + problem.remedy
