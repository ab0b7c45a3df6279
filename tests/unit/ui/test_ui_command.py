"""`cdclake ui` prints the address of a server that answers until it is interrupted."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from cdclake.cli import main as command
from cdclake.cli import page_answers
from cdclake.ui.page_server import PageServer


def test_the_printed_token_opens_the_page_until_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered: list[int] = []

    def one_request(server: PageServer) -> None:
        """Serve two requests as a browser sends them, then interrupt."""
        url = json.loads(capsys.readouterr().out)["url"]
        place, token = url.split("/#token=")
        assert urlsplit(place).hostname == "127.0.0.1" and len(token) >= 40
        for given in (token, "wrong"):
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            request = urllib.request.Request(f"{place}/api/overview")
            request.add_header("Authorization", f"Bearer {given}")
            try:
                with urllib.request.urlopen(request, timeout=20) as reply:
                    answered.append(reply.status)
            except urllib.error.HTTPError as error:
                answered.append(error.code)
            thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(page_answers, "local_answers", lambda: {"overview": lambda _: {"ok": True}})
    monkeypatch.setattr(PageServer, "serve_forever", one_request)
    with pytest.raises(SystemExit) as ended:
        command.main(["ui", "--json"])
    assert ended.value.code == 0
    assert answered == [200, 401]
