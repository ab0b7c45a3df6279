"""One spelling of the pipeline file for all commands: those that take FILE also take `--file`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_OPTION = "--file"


class FileCommand(TyperCommand):
    """Command whose argument FILE may be written as `--file FILE`, as other commands have it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; put the value of `--file` first, where FILE is."""
        takes_file = any(
            each.name == "file" and each.param_type_name == "argument" for each in self.params
        )
        return super().parse_args(ctx, file_first(args) if takes_file else args)


def file_first(args: list[str]) -> list[str]:
    """Return the arguments with the value of `--file` as the first one; the others as they are.

    >>> file_first(["--json", "--file", "shop.yaml"]), file_first(["--file=shop.yaml"])
    (['shop.yaml', '--json'], ['shop.yaml'])
    """
    for index, word in enumerate(args):
        if word.startswith(f"{_OPTION}="):
            return [word.partition("=")[2], *args[:index], *args[index + 1 :]]
        if word == _OPTION and index + 1 < len(args):
            return [args[index + 1], *args[:index], *args[index + 2 :]]
    return args
