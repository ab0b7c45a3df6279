"""Interactive shell of `cdclake sql`: completion of relations and columns, and a few commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from cdclake.cli.aligned import aligned
from cdclake.cli.output import emit_error, say
from cdclake.errors import CdcError, InputError
from cdclake.iceberg.relation_columns import relation_columns

if TYPE_CHECKING:
    from cdclake.plan import Plan

_HELP = r"""end a statement with ; to run it
\d          list the relations
\d NAME     list the columns of a relation
\q          leave the shell, as Ctrl-D does"""
_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "JOIN", "LEFT JOIN", "USING", "ON", "GROUP BY", "ORDER BY"),
    *("HAVING", "LIMIT", "WITH", "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL"),
    *("DISTINCT", "UNION ALL", "CASE", "WHEN", "THEN", "ELSE", "END", "count(*)", "DESC"),
)
_RELATION_NEXT = re.compile(r"\b(from|join|describe)\s+\w*$|^\\d\s+\w*$", re.I)
_WORD = re.compile(r"\w*$")
_QUALIFIED = re.compile(r"(\w+)\.\w*$")


class LakeCompleter(Completer):
    """Completer of relations after FROM and JOIN, and of the named relations' columns elsewhere."""

    def __init__(self, relations: Mapping[str, tuple[str, ...]]) -> None:
        self._relations = relations

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield the words that continue the word before the cursor."""
        word = _WORD.findall(document.text_before_cursor)[0]
        if not word and not complete_event.completion_requested:
            return
        for found in self._words(document):
            if found.lower().startswith(word.lower()):
                yield Completion(found, start_position=-len(word))

    def _words(self, document: Document) -> Iterable[str]:
        before = document.text_before_cursor
        if _RELATION_NEXT.search(before):
            return self._relations
        if qualified := _QUALIFIED.search(before):
            return self._relations.get(qualified[1].lower(), ())
        named = re.findall(r"\w+", document.text.lower())
        columns = [each for name in named for each in self._relations.get(name, ())]
        return dict.fromkeys([*columns, *_KEYWORDS, *self._relations])


class Shell:
    """Loop that reads statements from the terminal and runs them."""

    def __init__(self, plan: Plan, run: Callable[[str], None]) -> None:
        self._run = run
        self._relations = relation_columns(plan)

    def run(self) -> None:
        """Read and run statements until the input ends; a refused statement ends nothing."""
        session: PromptSession[str] = PromptSession(
            "cdclake> ",
            completer=LakeCompleter(self._relations),
            multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
            prompt_continuation="     ... ",
        )
        say(f"{len(self._relations)} relations; \\? for help, \\q to leave")
        while True:
            try:
                text = session.prompt().strip()
            except KeyboardInterrupt:  # drops the line that is being written
                continue
            except EOFError:
                return
            if text == "\\q":
                return
            self._obey(text)

    def _obey(self, text: str) -> None:
        try:
            if text.startswith("\\"):
                self._command(text)
            elif text.strip(";"):
                self._run(text)
        except CdcError as error:
            emit_error(error, as_json=False)
        except KeyboardInterrupt:
            say("interrupted")

    def _command(self, text: str) -> None:
        words = text.rstrip(";").split()
        if words[0] == "\\?":
            say(_HELP)
        elif words[0] != "\\d" or len(words) > 2:
            raise InputError(f"unknown command {text!r}", "\\? lists the commands")
        elif len(words) == 1:
            rows = [[name, str(len(columns) or "")] for name, columns in self._relations.items()]
            say("\n".join(aligned(["relation", "columns"], rows, {"columns"})))
        elif words[1].lower() in self._relations:
            say("\n".join(self._relations[words[1].lower()]))
        else:
            raise InputError(f"the lake has no relation {words[1]!r}", "\\d lists the relations")


def is_complete(text: str) -> bool:
    """Check whether Enter ends the input: a command, an empty line, or a `;` at the end."""
    stripped = text.strip()
    return not stripped or stripped.startswith("\\") or stripped.endswith(";")
