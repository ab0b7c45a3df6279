"""Build the docs' site: `make site` writes build/site/html/, which needs no network to be read.

The site has the repository's layout, so that every relative link of a page also leads somewhere
there. The build fails if a page is not in the navigation, a link or an anchor leads nowhere, or a
page loads anything from another host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from scripts.llms_page import FILE as LLMS
from scripts.navigation import ROOT, Navigation, problems, read_navigation
from scripts.site_links import foreign_resources, link_targets, missing_targets

SITE = ROOT / "site"
BUILD = ROOT / "build" / "site"
ZENSICAL = ROOT / "build" / "venvs" / "site" / "bin" / "zensical"
_PLAYER = SITE / "node_modules/asciinema-player/dist/bundle"
_SHIM = SITE / "node_modules/iframe-worker/shim/index.js"
ASSETS = (
    SITE / "assets/recordings.js",
    _PLAYER / "asciinema-player.min.js",
    _PLAYER / "asciinema-player.css",
)
# Searching from a folder needs it; the theme would load it from this host.
_FOREIGN_SHIM = "https://unpkg.com/iframe-worker/shim"

_COLOR = re.compile(r"\x1b\[[0-9;]*m")  # around each character, so that no word could be found


class SiteError(Exception):
    """Failure of the build; its text lists what is wrong."""


def build_site(root: Path = ROOT, build: Path = BUILD) -> Path:
    """Build the site of the pages below `root`, and return its folder."""
    navigation = read_navigation(root)
    _refuse(problems(navigation, root))
    pages, html = build / "pages", build / "html"
    shutil.rmtree(build, ignore_errors=True)
    for page in navigation.pages():
        _copy(root / page, pages / page)
    for asset in ASSETS:
        _copy(asset, pages / "assets" / asset.name)
    config = build / "zensical.toml"
    config.write_text(_config(navigation))
    _run_zensical(config)
    _complete(html, pages, navigation, root)
    _refuse([*missing_targets(html), *foreign_resources(html)])
    return html


def _config(navigation: Navigation) -> str:
    sections = ", ".join(
        f"{{{json.dumps(section.title)} = {json.dumps(section.pages)}}}"
        for section in navigation.sections
    )
    nav = f"nav = [{json.dumps(navigation.home)}, {sections}]"
    return (SITE / "zensical.toml").read_text().replace("[project]\n", f"[project]\n{nav}\n", 1)


def _run_zensical(config: Path) -> None:
    done = subprocess.run(
        [str(ZENSICAL), "build", "--strict", "--clean", "--config-file", str(config)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SiteError(_COLOR.sub("", done.stdout).partition("Traceback")[0])


def _complete(html: Path, pages: Path, navigation: Navigation, root: Path) -> None:
    """Add what the generator leaves out: sources for llms.txt, linked files, the shim."""
    for page in navigation.pages():
        _copy(root / page, html / page)
        for target in link_targets(pages / page):
            linked = root / target.relative_to(pages)
            if linked.is_file() and not (html / linked.relative_to(root)).exists():
                _copy(linked, html / linked.relative_to(root))
    _copy(root / LLMS.name, html / LLMS.name)
    _copy(_SHIM, html / "assets" / "iframe-worker.js")
    for page_file in html.rglob("*.html"):
        up = "../" * len(page_file.relative_to(html).parents[1:])
        text = page_file.read_text()
        page_file.write_text(text.replace(_FOREIGN_SHIM, f"{up}assets/iframe-worker.js"))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _refuse(found: Iterable[str]) -> None:
    if listed := sorted(found):
        raise SiteError("\n".join(listed))


def main() -> int:
    """Build the site and print its folder; print what is wrong if that fails."""
    try:
        html = build_site()
    except SiteError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"site: {html / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
