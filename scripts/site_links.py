"""Links and loaded files of the built site, and those that are missing or foreign."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FENCED = re.compile(r"^[ \t]*```.*?^[ \t]*```$", re.M | re.S)
_CODE = re.compile(r"`[^`\n]*`")
_MARKDOWN_LINK = re.compile(r"\]\(([^()\s]+)\)")
# Attributes whose address the browser loads with the page.
_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
_NOT_LOADED = {"canonical", "prev", "next"}


class _Addresses(HTMLParser):
    """The addresses of one page: those that it links, and those that it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.linked: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of the tag, if it has one."""
        given = dict(attrs)
        if tag == "a" and (address := given.get("href")):
            self.linked.append(address)
        elif (address := given.get(_LOADED.get(tag, ""))) and given.get("rel") not in _NOT_LOADED:
            self.loaded.append(address)


def link_targets(page: Path) -> Iterator[Path]:
    """Yield the file of each relative link of a Markdown page."""
    text = _CODE.sub("", _FENCED.sub("", page.read_text()))
    for address in _MARKDOWN_LINK.findall(text):
        if not urlsplit(address).scheme and (path := address.partition("#")[0]):
            yield Path(page.parent, path).resolve()


def missing_targets(site: Path) -> Iterator[str]:
    """Yield each relative address of the site's pages that leads to no file."""
    for page in site.rglob("*.html"):
        found = _read(page)
        for address in {*found.linked, *found.loaded}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or not parts.path or page.name == "404.html":
                continue
            if not (page.parent / unquote(parts.path)).is_file():
                yield f"{page.relative_to(site)}: {address} does not exist"


def foreign_resources(site: Path) -> Iterator[str]:
    """Yield what the site's pages load from another host."""
    for page in site.rglob("*.html"):
        for address in _read(page).loaded:
            if urlsplit(address).netloc:
                yield f"{page.relative_to(site)}: loads {address}"


def _read(page: Path) -> _Addresses:
    addresses = _Addresses()
    addresses.feed(page.read_text())
    return addresses
