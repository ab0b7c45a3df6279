"""Debian's Chromium, driven by its ChromeDriver in the W3C WebDriver protocol."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

_ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--disable-default-apps", "--lang=en"),
)
_LOGS = {"performance": "ALL", "browser": "ALL"}
_STARTED = re.compile(r"started successfully on port (\d+)")
_REQUEST_S = 60
KEYS = {"Tab": "\ue004", "Enter": "\ue007"}


class MissingBrowser(Exception):
    """Chromium or its driver that is not installed."""

    def __init__(self) -> None:
        super().__init__("chromium is missing: run `apt-get install chromium chromium-driver`")


class Chrome:
    """Session of a headless browser."""

    def __init__(self, port: int, folder: str) -> None:
        self._url = f"http://127.0.0.1:{port}/session"
        options = {"args": [*_ARGUMENTS, f"--user-data-dir={folder}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": _LOGS}
        made = self._send("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/{made['sessionId']}"

    def open(self, url: str) -> None:
        """Load the page."""
        self._send("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what the body of a JavaScript function returns."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self) -> str:
        """Return the page's text as it is shown."""
        return str(self.run("return document.body.innerText"))

    def wait(self, shows: Callable[[str], bool], seconds: float = 30) -> str:
        """Return the text as soon as it shows something."""
        deadline, text = time.monotonic() + seconds, ""
        while time.monotonic() < deadline:
            text = self.text()
            if shows(text):
                return text
            time.sleep(0.1)
        raise AssertionError(f"not shown in {seconds} s; the page shows: {text}")

    def press(self, *keys: str) -> None:
        """Press and release keys, by name or character."""
        steps = [
            {"type": kind, "value": KEYS.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": steps}]})

    def resize(self, width: int, height: int) -> None:
        """Show the page in a viewport of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", size)

    def color_scheme(self, scheme: str) -> None:
        """Have the page see this preference for `light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.command("Emulation.setEmulatedMedia", {"features": [feature]})

    def screenshot(self) -> bytes:
        """Return a PNG file of the viewport."""
        return base64.b64decode(self._send("GET", "/screenshot"))

    def requested(self) -> list[str]:
        """Return the addresses that the page has requested since the last call."""
        entries = self._send("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [each for each in messages if each["method"] == "Network.requestWillBeSent"]
        return [each["params"]["request"]["url"] for each in sent]

    def complaints(self) -> Sequence[str]:
        """Return the errors in the browser's console since the last call."""
        entries = self._send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def command(self, name: str, parameters: Mapping[str, Any]) -> Any:
        """Run a command of the DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def quit(self) -> None:
        """End the browser."""
        self._send("DELETE", "")

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_S) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None


@contextmanager
def chrome() -> Iterator[Chrome]:
    """Start a browser; raise MissingBrowser where none is installed."""
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        raise MissingBrowser
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            port = next(int(m[1]) for line in process.stdout if (m := _STARTED.search(line)))
            browser = Chrome(port, folder)
            try:
                yield browser
            finally:
                browser.quit()
        finally:
            process.terminate()
