"""Relapses into the avoided language, one template for each way of prose into a file."""

OPENINGS = (
    *("What", "Whether", "How", "Why", "Where", "Which", "When", "That", "Those", "Of", "By"),
    *("Who", "From", "Up to", "Until", "So", "As", "To"),
)
PHRASES = (
    *("somebody", "anybody", "nobody", "whoever", "any more", "no more"),
    *("of ours", "of theirs", "of yours", "of its own", "of their own", "anew"),
    *("mend", "mends", "mended", "mending", "brought up", "take up", "taken along"),
    *("heard of", "trouble", "by which", "of whom", "with whose", "below which", "beside"),
    *("tell that", "tells which", "told what", "say whether", "says it"),
)
DOCSTRINGS = {
    "function": 'def f():\n    """{}."""\n',
    "coroutine": 'async def f():\n    """{}."""\n',
    "method": 'class C:\n    def f(self):\n        """{}."""\n',
    "class": 'class C:\n    """{}."""\n',
}
PROSE = {
    **DOCSTRINGS,
    "module": '"""{}."""\n',
    "comment": "x = 1  # {}\n",
    "wrapped comment": "# The row\n# {}\n",
}
SHOWN = {
    "error": 'raise InputError("{} x")',
    "remedy": 'raise TableError(table, "failed", "{} x")',
    "error in an f-string": 'raise ComponentFailed(f"{{table}} {} {{x}}")',
    "error through a variable": 'message = f"{{x}} {}"\nraise Refused(message, remedy)',
    "concatenated error": 'raise Refused("a b" + f" {} {{x}}", "")',
    "conditional in an f-string": "raise Refused(f\"{{'x' if a else '{} x'}}\", '')",
    "refused": 'raise Refused("bad", "write it {}")',
    "problem": 'Problem(1, 1, "{} x", "remove it")',
    "keyword": 'failed(message="x", remedy="{} x")',
    "help of a command": 'app = typer.Typer(help="{} x")',
    "help of an option": 'x: Annotated[bool, typer.Option("--x", help="{} x")] = False',
    "description of a field": 'class A(Section):\n    x: int = Field(1, description="{} x")',
    "alarm": 'Watch(name="lag", says=f"more than {{x}}" f" {}")',
    "dashboard": 'GraphWidget(title="{} x")',
    "log line": 'log.info("%s {}", x)',
    "warning": 'logger.warning(f"{{x}} {}")',
    "printed": 'say(f"{{table}}: {}")',
    "written": 'sys.stderr.write(f"{} {{x}}\\n")',
}
