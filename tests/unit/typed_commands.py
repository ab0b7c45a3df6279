"""Commands on the docs' pages, and those that their programs do not accept."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path
from textwrap import dedent
from typing import Any

import botocore.session
from botocore import xform_name

from cdclake.cli.main import commands
from tests.unit.markdown import PROJECT, blocks

# Known to every reader; what follows them is theirs.
STANDARD = {"cd", "curl", "docker", "export", "git", "npm", "pg_dump", "pip", "psql", "uv", "."}
STANDARD |= {"printf", "python", "python3.11"}
CHECKED = {"aws", "cdclake", "make", "npx"}
_CHECKED = re.compile(rf"(?:\.venv/bin/)?(?:{'|'.join(sorted(CHECKED))}) ")
CDK_COMMANDS = {"bootstrap", "deploy", "destroy", "diff", "import", "synth"}
# Of the AWS CLI itself; botocore has no model of them.
_OWN_AWS_COMMANDS = {("s3", "cp"), ("s3", "ls"), ("s3", "mv"), ("s3", "rm"), ("logs", "tail")}
_OWN_AWS_OPTIONS = {"query", "output", "region", "no-paginate"}
_AWS_SERVICES = {"s3api": "s3"}  # as the AWS CLI calls a service
_ASSIGNMENT = re.compile(r"[A-Z_]+=")


def typed_lines(page: Path) -> list[str]:
    """Return the command lines of the page's shell blocks, each with one program."""
    lines = [line for block in blocks(page, "sh") for line in _lines(block)]
    return [command for line in lines for command in commands_of(line)]


def checked_lines(page: Path) -> list[str]:
    """Return the lines of shell blocks and of those without a language that tests can check."""
    lines = [line for block in blocks(page, "") for line in _lines(block) if _CHECKED.match(line)]
    commands = [*typed_lines(page), *(command for line in lines for command in commands_of(line))]
    return [command for command in commands if command.split()[0] in CHECKED]


def _lines(block: str) -> list[str]:
    lines = dedent(block).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith((" ", "#"))]


def commands_of(line: str) -> Iterator[str]:
    """Yield each program's part of a line, without what a shell does with it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for token in lexer:
        if token[0] in "<>":
            next(lexer)  # the file
        elif set(token) <= set("|&;"):
            yield _program_first(words)
            words = []
        else:
            words.append(token)
    if words:
        yield _program_first(words)


def _program_first(words: list[str]) -> str:
    rest = list(dropwhile(_ASSIGNMENT.match, words))
    if rest[:2] == ["uv", "run"]:
        rest = list(dropwhile(lambda word: word.startswith("--"), rest[2:]))
    program, *arguments = rest
    return shlex.join([program.removeprefix(".venv/bin/"), *arguments])


def lines_of(program: str, lines: list[str]) -> list[str]:
    """Return those lines that call this program."""
    return [line for line in lines if line.split()[0] == program]


@cache
def verbs() -> dict[str, Any]:
    """Return the CLI's commands by name."""
    return commands()


def split_command(words: list[str]) -> tuple[str, list[str]]:
    """Return the command, of one word or two, and its arguments."""
    two = " ".join(words[1:3])
    return (two, words[3:]) if two in verbs() else (words[1], words[2:])


def unknown_words(words: list[str]) -> list[str]:
    """Return the command if the CLI does not have it, else the options that it does not take."""
    known, (name, rest) = verbs(), split_command(words)
    if words[1:2] in (["--help"], ["--version"], ["--install-completion"]):
        return []
    if name not in known:
        return [name]
    taken = {option for each in known[name].params for option in each.opts} | {"--help", "-h"}
    own = takewhile(lambda word: word != "--", rest)  # what follows is another program's
    given = {word.partition("=")[0] for word in own if re.match(r"--?[a-z]", word)}
    return sorted(given - taken)


def unknown_aws_words(line: str) -> list[str]:
    """Return the call if botocore's models do not have it, else the options that it lacks."""
    service, call, *words = shlex.split(line)[1:]
    if (service, call) in _OWN_AWS_COMMANDS:
        return []
    model = _aws_model(_AWS_SERVICES.get(service, service))
    calls = {xform_name(name, "-"): name for name in model.operation_names}
    if call not in calls:
        return [call]
    shape = model.operation_model(calls[call]).input_shape
    known = {xform_name(name, "-"): member.type_name for name, member in shape.members.items()}
    given = {word[2:].partition("=")[0] for word in words if word.startswith("--")}
    switched_off = {name for name in given if known.get(name.removeprefix("no-")) == "boolean"}
    return sorted(given - switched_off - _OWN_AWS_OPTIONS - known.keys())


@cache
def _aws_model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


@cache
def make_targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.M))
