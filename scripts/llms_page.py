"""Write llms.txt, a list of all pages for programs that read the docs, from the navigation.

`python -m scripts.llms_page` writes it; a unit test fails while it is out of date.
"""

from __future__ import annotations

from scripts.navigation import (
    DECISIONS,
    ROOT,
    descriptions,
    first_sentence,
    page_title,
    read_navigation,
)

FILE = ROOT / "llms.txt"
_NOTE = (
    "Nothing here has ever run on AWS: the deployment is validated offline, the jobs run locally."
)


def llms_page() -> str:
    """Return the file: a line per page, with its title and what it is for."""
    navigation, known = read_navigation(), descriptions()
    intro = " ".join((ROOT / navigation.home).read_text().split("\n\n")[1].split())
    lines = [f"# {page_title(navigation.home)}", "", f"> {intro}", "", _NOTE]
    for section in navigation.sections:
        lines += ["", f"## {section.title}", ""]
        lines += [_line(page, known) for page in section.pages]
    return "\n".join(lines) + "\n"


def _line(page: str, known: dict[str, str]) -> str:
    link = f"- [{page_title(page)}]({page})"
    if page.startswith(DECISIONS):
        return link  # its title states the decision
    return f"{link}: {known.get(page) or first_sentence(page)}"


if __name__ == "__main__":
    FILE.write_text(llms_page(), encoding="utf-8")
